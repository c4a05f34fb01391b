"""Classifiers of the originals score in our commands what they score in their own programs.

For each task of GLUE and for XNLI: the same rows, a small random model that each program has filled
and saved, and the order of labels that the program gives its outputs.
"""

import unicodedata

import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest
import tiny
from command_flags import main_of
from gluonnlp.data.classification import get_task as gluonnlp_task
from json_files import cases
from scipy.stats import pearsonr
from script_runs import ROOT, read_json, run
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

import bert
from model_zoo.tasks.classification import ClassifierFeatures
from model_zoo.tasks.classification_data import get_task, read_examples

torch = pytest.importorskip('torch')
ppb = pytest.importorskip('pytorch_pretrained_bert')
transformers = pytest.importorskip('transformers')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore')]

COUNT, LENGTH = 60, 48
SIZES = {**tiny.BERT, 'num_hidden_layers': 1, 'intermediate_size': 512}
SIZES.update(max_position_embeddings=LENGTH, initializer_range=0.5)
#: the lists of pytorch-pretrained-BERT's and Google's run_classifier.py
LABELS = cases('labels')['LABELS']
#: those of the data sets on the hub, with which transformers trains
HUB_LABELS = cases('labels')['HUB_LABELS']


class Rows:
    """The rows of a task in files of its layout, encoded, and what each program calls them."""

    def __init__(self, name, folder):
        self.task, self.folder = get_task(name), folder
        rows = self._made_up()
        layout = self.task.layouts[-1] if name == 'CoLA' else self.task.layouts[0]
        lines = []
        if layout.header:
            lines = ['\t'.join(['index', *layout.text, layout.label])]
        for number, (*texts, label) in enumerate(rows):
            cells = [number, *texts, label] if layout.header else ['x', label, '*', *texts]
            lines.append('\t'.join(map(str, cells)))
        for segment in self.task.dev_segments:
            (folder / f'{segment}.tsv').write_text('\n'.join(lines) + '\n', 'utf-8')
        self.segment = self.task.dev_segments[0]
        text = unicodedata.normalize('NFD', ' '.join(text for row in rows for text in row[:-1]))
        letters = sorted({*text.lower()})
        # as in an uncased vocabulary, without accents
        words = [word for word in letters if word.strip() and unicodedata.category(word) != 'Mn']
        tiny.write_words(folder, [*words, *(f'##{word}' for word in words)])
        self.tokenizer = bert.BertTokenizer(folder / 'vocab.txt')
        self.labels = [row[-1] for row in rows]
        self.samples = ClassifierFeatures(self.tokenizer, self.task, LENGTH)(
            read_examples(self.task, folder, self.segment)
        )

    def _made_up(self):
        random, labels = np.random.RandomState(5), self.task.labels or (0.5, 2.25, 4.0, 5.0)
        words = ['the', 'cat', 'sat', 'on', 'a', 'mat', 'and', 'no', 'dog', 'was', 'in', 'town']

        def text():
            return ' '.join(random.choice(words, random.randint(3, 9)))

        return [
            [text() for _ in self.task.layouts[0].text] + [labels[number % len(labels)]]
            for number in range(COUNT)
        ]

    def config(self, **options):
        return {'vocab_size': len(self.tokenizer.vocab), **SIZES, **options}

    def outputs(self, model):
        """Those of ``model(words, token types, mask)``, a row at a time."""
        rows = []
        for sample in self.samples:
            words, types = (torch.tensor(each[None].astype('int64')) for each in sample[:2])
            with torch.no_grad():
                rows.append(model(words, types, torch.ones_like(words)).numpy()[0])
        return np.stack(rows)

    def metrics(self, outputs, names):
        """The first metric of the task, of outputs whose columns bear such names."""
        if not self.task.target.has_classes:
            return {'pearson': pearsonr(np.float64(self.labels), outputs[:, 0])[0]}
        found = [names[place] for place in outputs.argmax(axis=-1)]
        assert len({*found}) > 1  # otherwise nothing is shown
        if self.task.name == 'CoLA':
            return {'matthews': matthews_corrcoef(self.labels, found)}
        metrics = {'accuracy': accuracy_score(self.labels, found)}
        if 'f1' in self.task.target.metrics:
            metrics['f1'] = f1_score(self.labels, found, pos_label='1')
        return metrics

    def evaluate(self, *words, script='scripts/finetune_classifier.py', evaluates='--do_eval'):
        """What our command says of a model."""
        main, output = main_of(script, ROOT), self.folder / 'out'
        argv = ['--task_name', self.task.name, '--data_dir', self.folder, '--output_dir', output]
        argv += ['--max_length', LENGTH, evaluates, '--overwrite_output_dir', *words]
        assert run(main, *argv) == 0
        return read_json(output, 'inference.json')['dev'][self.segment]


def same(ours, theirs):
    for name, value in theirs.items():
        if name in ('accuracy', 'f1'):
            assert ours[name] == value
        else:
            assert ours[name] == pytest.approx(value, abs=1e-6)


#: one of each layout, order and metric; tests/unit/tasks has the orders of all tasks
TASKS = ('CoLA', 'MNLI', 'MRPC', 'RTE', 'STS-B', 'XNLI')


@pytest.fixture(params=TASKS)
def rows(request, tmp_path):
    return Rows(request.param, tmp_path)


def fill_ppb(rows, seed=1):
    torch.manual_seed(seed)
    names = LABELS[rows.task.name]
    sizes = rows.config()
    config = ppb.BertConfig(sizes.pop('vocab_size'), **sizes)
    model = ppb.BertForSequenceClassification(config, num_labels=len(names or 'x')).eval()
    model.classifier.bias.data -= torch.tensor(rows.outputs(model).mean(axis=0))
    return model


def save_ppb(rows, model):
    torch.save(model.state_dict(), rows.folder / 'pytorch_model.bin')
    (rows.folder / 'config.json').write_text(model.config.to_json_string())


def test_of_pytorch_pretrained_bert(rows):
    model, names = fill_ppb(rows), LABELS[rows.task.name]
    save_ppb(rows, model)
    theirs = rows.metrics(rows.outputs(model), names)
    same(rows.evaluate('--model', rows.folder), theirs)
    script = 'scripts/originals/pytorch_pretrained_bert/run_classifier.py'
    same(rows.evaluate('--model', rows.folder, script=script), theirs)


def test_of_google(rows):
    pytest.importorskip('tensorflow')
    model, names = fill_ppb(rows), LABELS[rows.task.name]
    if names is None:
        pytest.skip('it has no regression')
    save_ppb(rows, model)
    head, place = bert.BertForSequenceClassification, str(rows.folder / 'google')
    head.from_pretrained(str(rows.folder), num_labels=len(names)).save_pretrained(
        place, format='tensorflow'
    )
    outputs = rows.outputs(model)
    theirs = rows.metrics(outputs, names)
    words = (
        f'--init_checkpoint {place}/model.ckpt --bert_config_file {place}/bert_config.json '
        f'--vocab_file {rows.folder}/vocab.txt'
    ).split()
    script = 'scripts/originals/google/run_classifier.py'
    same(rows.evaluate(*words), theirs)
    same(rows.evaluate(*words, script=script), theirs)
    # the columns of its test_results.tsv are its labels
    test = rows.task.test_segments[0]
    dev = (rows.folder / f'{rows.segment}.tsv').read_text('utf-8').splitlines()
    if rows.task.name == 'CoLA':
        dev = ['index\tsentence', *('\t'.join(line.split('\t')[2:]) for line in dev)]
    (rows.folder / f'{test}.tsv').write_text('\n'.join(dev) + '\n', 'utf-8')
    rows.evaluate(*words, '--do_predict=true', script=script)
    columns = np.loadtxt(rows.folder / 'out' / f'{test}_results.tsv')
    expected = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(columns, expected, atol=1e-5)
    lines = (rows.folder / 'out' / rows.task.submissions[test]).read_text().splitlines()[1:]
    assert [line.split('\t')[1] for line in lines] == [names[n] for n in expected.argmax(axis=1)]


@pytest.mark.parametrize('named', [True, False])
def test_of_transformers(rows, named, capsys):
    names = HUB_LABELS[rows.task.name]
    options = {'num_labels': len(names or 'x')}
    if named and names:
        options = {'id2label': dict(enumerate(names))}
    torch.manual_seed(2)
    config = transformers.BertConfig(**rows.config(**options))
    model = transformers.BertForSequenceClassification(config).eval()

    def forward(words, types, mask):
        return model(words, token_type_ids=types, attention_mask=mask).logits

    model.classifier.bias.data -= torch.tensor(rows.outputs(forward).mean(axis=0))
    model.save_pretrained(rows.folder)
    outputs, task = rows.outputs(forward), rows.task
    if names is None:
        same(rows.evaluate('--model', rows.folder), rows.metrics(outputs, None))
        return
    theirs = rows.metrics(outputs, list(map(task.target.find, names)))
    ours = rows.evaluate('--model', rows.folder)
    warned = "the model doesn't name its labels" in capsys.readouterr().err
    assert warned == (not named and task.target.has_words)
    if named or not task.target.has_words:
        same(ours, theirs)
        return
    same(ours, rows.metrics(outputs, LABELS[task.name]))
    same(rows.evaluate('--model', rows.folder, '--labels', ','.join(names)), theirs)


def test_of_gluonnlp(rows):
    names = gluonnlp_task(rows.task.name).class_labels or 'x'
    size = len(rows.tokenizer.vocab)
    encoder = nlp.model.BERTEncoder(
        num_layers=1, units=16, hidden_size=512, max_length=LENGTH, num_heads=2, dropout=0.1
    )
    model = nlp.model.BERTModel(
        encoder,
        vocab_size=size,
        token_type_vocab_size=2,
        units=16,
        embed_size=16,
        use_pooler=True,
        use_decoder=False,
        use_classifier=False,
    )
    model = nlp.model.BERTClassifier(model, num_classes=len(names), dropout=0.1)
    mx.random.seed(4)
    model.initialize(mx.init.Normal(0.5))

    def forward(words, types, mask):
        words, types = (mx.nd.array(each.numpy()) for each in (words, types))
        length = mx.nd.array([words.shape[1]])
        return torch.tensor(model(words, types, length).asnumpy())

    bias = model.classifier[-1].bias
    bias.set_data(bias.data() - mx.nd.array(rows.outputs(forward).mean(axis=0)))
    outputs = rows.outputs(forward)
    path = rows.folder / 'model_bert_3.params'
    model.save_parameters(str(path))
    sizes = f'num_layers=1,units=16,num_heads=2,hidden_size=512,max_length={LENGTH}'
    words = f'--model bert_12_768_12 --model_parameters {path} --hparams {sizes}'.split()
    words += ['--vocab_file', rows.folder / 'vocab.txt']
    ours = rows.evaluate(*words, evaluates='--only_inference')
    same(ours, rows.metrics(outputs, names))
