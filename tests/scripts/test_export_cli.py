"""export/export.py as a command, with GluonNLP's flags; and its use as a module."""

import json
import os
import pathlib

import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest
import tiny
import warm

import bert
import export
import export.export as module
import gpt
import gpt2
import transfo_xl
from bert.catalogue import ARCHITECTURES
from model_zoo.app import cli
from model_zoo.errors import CheckpointError, InputError, UnknownNameError, ZooError

ROOT = pathlib.Path(export.__file__).parent.parent
CONFIG = {**tiny.BERT, 'vocab_size': 40, 'num_attention_heads': 4}


def make(name, **options):
    block = getattr(bert, name)(bert.BertConfig(**CONFIG), **options)
    block.initialize(mx.init.Normal(0.3))
    return block


@pytest.fixture
def small(monkeypatch):
    """The zoo's names mean small models."""
    fields = {name: value for name, value in CONFIG.items() if name != 'vocab_size'}
    for name in ('bert_12_768_12', 'bert_24_1024_16'):
        monkeypatch.setitem(ARCHITECTURES, name, fields)


@pytest.fixture
def classifier(tmp_path):
    """A classifier with 3 labels, and the folder that its save_pretrained filled."""
    block = make('BertForSequenceClassification', num_labels=3)
    block.save_pretrained(str(tmp_path / 'model'))
    return block, str(tmp_path / 'model')


@pytest.fixture
def inputs():
    words = mx.nd.array(np.random.randint(0, 40, (3, 11)))
    return words, mx.nd.zeros_like(words), mx.nd.array([11, 4, 7])


def load(folder, task):
    return mx.gluon.SymbolBlock.imports(
        str(folder / f'{task}-symbol.json'),
        ['data0', 'data1', 'data2'],
        str(folder / f'{task}-0000.params'),
    )


def run(*arguments, cwd, **changes):
    environment = {**os.environ, **changes}
    environment.pop('PYTHONPATH', None)
    return warm.run(arguments, cwd, environment)


# -- in processes of their own ------------------------------------------------------------------


def test_command_from_another_folder(tmp_path, classifier, inputs):
    block, folder = classifier
    result = run(
        ROOT / 'export' / 'export.py', '--task', 'classification', '--model_name', folder,
        '--output_dir', 'out', '--seq_length', 12, cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [
        os.path.join('out', 'classification-symbol.json'),
        os.path.join('out', 'classification-0000.params'),
    ]
    loaded = load(tmp_path / 'out', 'classification')
    np.testing.assert_allclose(loaded(*inputs).asnumpy(), block(*inputs).asnumpy(), atol=1e-5)


def test_task_is_that_of_the_folder(tmp_path, classifier, capsys):
    output = tmp_path / 'out'
    assert not module.main([classifier[1], '--output_dir', str(output), '--seq_length', '20'])
    assert (output / 'classification-symbol.json').exists()
    with pytest.raises(SystemExit):
        module.main(['--output_dir', str(output)])
    assert '--task is required' in capsys.readouterr().err


def test_error_of_the_command_is_one_line(tmp_path):
    result = run(
        ROOT / 'export' / 'export.py', '--task', 'classification', '--model_parameters', 'none',
        '--output_dir', 'out', cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 1 and result.stdout == ''
    assert "error: cannot read 'none': No such file" in result.stderr.splitlines()[-1]
    assert 'Traceback' not in result.stderr
    assert os.listdir(tmp_path / 'out') == []


@pytest.mark.parametrize('cwd', [ROOT, ROOT / 'export'])
def test_import_of_the_package(cwd):
    program = (
        'import sys; sys.path.insert(0, {!r}); import export; '
        'print(export.export_block.__module__, export.__file__)'
    )
    result = run('-c', program.format(str(ROOT)), cwd=cwd)
    assert result.stdout.split() == ['export.export', str(ROOT / 'export' / '__init__.py')]


# -- in this process ----------------------------------------------------------------------------


@pytest.mark.parametrize('form', ['native', 'gluonnlp'])
@pytest.mark.parametrize(
    'task, name, options',
    [
        ('classification', 'BertForSequenceClassification', {'num_labels': 3}),
        ('classification', 'BertForSequenceClassification', {'num_labels': 2, 'dropout': 0.0}),
        ('regression', 'BertForSequenceClassification', {'num_labels': 1}),
        ('question_answering', 'BertForQuestionAnswering', {}),
        ('question_answering', 'BertForQuestionAnswering', {'use_pooler': True}),
        (
            'classification',
            'BertForSequenceClassification',
            {'use_decoder': True, 'use_classifier': True},
        ),
    ],
)
def test_parameters_of_each_task(tmp_path, small, inputs, task, name, options, form):
    """The architecture is the model's name, the rest is found in the file."""
    block = make(name, **options)
    path = str(tmp_path / 'saved.params')
    block.save_parameters(path, format=form)
    out = tmp_path / 'out'
    module.main(['--task', task, '--model_parameters', path, '--output_dir', str(out),
                 '--seq_length', '24'])  # fmt: skip
    names = [f'{task}-0000.params', f'{task}-SHA256SUMS', f'{task}-symbol.json']
    assert sorted(os.listdir(out)) == names
    results, expected = load(out, task)(*inputs), block(*inputs)
    if task != 'question_answering':
        results, expected = [results], [expected]
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        np.testing.assert_allclose(result.asnumpy(), wanted.asnumpy(), atol=1e-5)


def test_file_of_gluonnlps_classifier(tmp_path, small, inputs):
    encoder = nlp.model.BERTEncoder(
        num_layers=2, units=16, hidden_size=32, max_length=24, num_heads=4
    )
    model = nlp.model.BERTModel(
        encoder, vocab_size=40, token_type_vocab_size=2, units=16, embed_size=16,
        use_decoder=False, use_classifier=False,
    )  # fmt: skip
    theirs = nlp.model.BERTClassifier(model, num_classes=5, dropout=0.1)
    theirs.initialize(mx.init.Normal(0.3))
    expected = theirs(*inputs).asnumpy()
    path = str(tmp_path / 'theirs.params')
    theirs.save_parameters(path)
    module.main(['--task', 'classification', '--model_parameters', path, '--output_dir',
                 str(tmp_path), '--seq_length', '10', '--dropout', '0.3'])  # fmt: skip
    result = load(tmp_path, 'classification')(*inputs).asnumpy()
    np.testing.assert_allclose(result, expected, atol=1e-5)
    nodes = json.loads((tmp_path / 'classification-symbol.json').read_text())['nodes']
    rates = {node['attrs']['p'] for node in nodes if node['op'] == 'Dropout'}
    assert '0.3' in rates


def test_parameters_instead_of_the_folders(tmp_path, classifier, inputs):
    _, folder = classifier
    other = make('BertForSequenceClassification', num_labels=4)
    path = str(tmp_path / 'other.params')
    other.save_parameters(path)
    module.main(['--task', 'classification', '--model_name', folder, '--model_parameters', path,
                 '--output_dir', str(tmp_path), '--seq_length', '8'])  # fmt: skip
    result = load(tmp_path, 'classification')(*inputs).asnumpy()
    np.testing.assert_allclose(result, other(*inputs).asnumpy(), atol=1e-5)


def test_random_parameters(tmp_path, small, inputs):
    for task, outputs in [('classification', 2), ('regression', 1)]:
        module.main(['--task', task, '--vocab_size', '40', '--output_dir', str(tmp_path),
                     '--seq_length', '8'])  # fmt: skip
        assert load(tmp_path, task)(*inputs).shape == (3, outputs)
    module.main(['--task', 'classification', '--vocab_size', '40', '--num_classes', '7',
                 '--output_dir', str(tmp_path), '--seq_length', '8'])  # fmt: skip
    assert load(tmp_path, 'classification')(*inputs).shape == (3, 7)
    module.main(['--task', 'question_answering', '--vocab_size', '40', '--output_dir',
                 str(tmp_path), '--seq_length', '8'])  # fmt: skip
    assert len(load(tmp_path, 'question_answering')(*inputs)) == 2


def test_warning_about_random_parameters(tmp_path, small, capsys):
    assert cli.run(module.main, ['--task', 'regression', '--vocab_size', '40', '--output_dir',
                                 str(tmp_path), '--seq_length', '8']) == 0  # fmt: skip
    assert '--model_parameters is not given: the parameters of the export are random' in (
        capsys.readouterr().err
    )


def test_vocabulary_that_is_nowhere(tmp_path, small, monkeypatch):
    from model_zoo.pretrained import download

    monkeypatch.setenv('MXNET_GLUON_REPO', 'http://127.0.0.1:9/')
    monkeypatch.setenv('no_proxy', '127.0.0.1')
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'home'))
    monkeypatch.setattr(download, 'BACKOFF', 0.001)
    with pytest.raises(ZooError, match=r'(?s)no vocabulary found.*or pass --vocab_size'):
        module.main(['--task', 'classification', '--output_dir', str(tmp_path / 'out')])
    folder = tmp_path / 'home' / 'models' / 'bert_12_768_12_book_corpus_wiki_en_uncased'
    folder.mkdir(parents=True)
    (folder / 'vocab.txt').write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
    module.main(['--task', 'classification', '--output_dir', str(tmp_path / 'out'),
                 '--seq_length', '8'])  # fmt: skip
    arrays = mx.nd.load(str(tmp_path / 'out' / 'classification-0000.params'))
    assert (6, 16) in [array.shape for array in arrays.values()]


@pytest.mark.parametrize(
    'error, message, arguments',
    [
        (UnknownNameError, "pretrained model 'bert_1'", ['--model_name', 'bert_1']),
        (UnknownNameError, "data set of bert_12_768_12 'x'", ['--dataset_name', 'x']),
        (InputError, '--seq_length 25: the model takes 1 to 24', ['--seq_length', '25']),
        (InputError, '--seq_length 0', ['--seq_length', '0']),
        (InputError, r'--num_classes 5: .*model.params.* has 3', ['--num_classes', '5']),
        (InputError, 'with 3 output.s.: regression has 1', ['--task', 'regression']),
        (CheckpointError, 'no span_classifier for question_answ', ['--task', 'question_answering']),
        (CheckpointError, 'does not fit', ['--vocab_size', '41']),
        (InputError, 'cannot write to directory', ['--output_dir', '/dev/null/out']),
    ],
)
def test_bad_arguments(tmp_path, classifier, error, message, arguments):
    _, folder = classifier
    defaults = ['--task', 'classification', '--output_dir', str(tmp_path / 'out')]
    if '--dataset_name' not in arguments:
        defaults += ['--model_name', folder]
    with pytest.raises(error, match=message):
        module.main(defaults + arguments)
    assert not (tmp_path / 'out').exists() or os.listdir(tmp_path / 'out') == []


def test_folder_without_configuration(tmp_path, classifier):
    _, folder = classifier
    os.remove(os.path.join(folder, 'config.json'))
    with pytest.raises(InputError, match=r'has no config\.json'):
        module.main(['--task', 'classification', '--model_name', folder, '--output_dir',
                     str(tmp_path)])  # fmt: skip


def test_parameters_of_bert_alone(tmp_path, classifier):
    _, folder = classifier
    path = str(tmp_path / 'bert.params')
    make('BertModel', use_classifier=True).save_parameters(path)
    with pytest.raises(CheckpointError, match='no classifier for classification.*BERT alone'):
        module.main(['--task', 'classification', '--model_name', folder, '--model_parameters',
                     path, '--output_dir', str(tmp_path / 'out')])  # fmt: skip
    (tmp_path / 'damaged.params').write_bytes((tmp_path / 'bert.params').read_bytes()[:-50])
    with pytest.raises(CheckpointError, match='is damaged'):
        module.main(['--task', 'classification', '--model_name', folder, '--model_parameters',
                     str(tmp_path / 'damaged.params'), '--output_dir', str(tmp_path)])  # fmt: skip


@pytest.mark.parametrize(
    'task, name, outputs',
    [
        ('tagging', 'BertForTokenClassification', 1),
        ('masked_lm', 'BertForMaskedLM', 1),
        ('next_sentence', 'BertForNextSentencePrediction', 1),
        ('pretraining', 'BertForPreTraining', 2),
        ('model', 'BertModel', 2),
        ('sentence_embedding', 'BertModel', 1),
    ],
)
def test_more_tasks_of_bert(tmp_path, inputs, task, name, outputs):
    block = make(name)
    block.save_pretrained(str(tmp_path / 'model'))
    module.main(['--task', task, '--model_name', str(tmp_path / 'model'), '--output_dir',
                 str(tmp_path / 'out'), '--seq_length', '8'])  # fmt: skip
    made = load(tmp_path / 'out', task)(*inputs)
    assert (len(made) if isinstance(made, list) else 1) == outputs
    if task == 'sentence_embedding':
        expected = bert.BertSentenceEncoder(block)(*inputs)
    else:
        expected = block(*inputs)
    for result, wanted in zip(
        made if outputs > 1 else [made], expected if outputs > 1 else [expected]
    ):
        np.testing.assert_allclose(result.asnumpy(), wanted.asnumpy(), atol=1e-5)


def test_choices(tmp_path):
    block = make('BertForMultipleChoice')
    block.save_pretrained(str(tmp_path / 'model'))
    module.main(['--task', 'multiple_choice', '--model_name', str(tmp_path / 'model'),
                 '--output_dir', str(tmp_path / 'out'), '--seq_length', '8'])  # fmt: skip
    words = mx.nd.array(np.random.randint(0, 40, (2, 4, 7)))
    inputs = words, mx.nd.zeros_like(words), mx.nd.array(np.random.randint(1, 8, (2, 4)))
    result = load(tmp_path / 'out', 'multiple_choice')(*inputs)
    np.testing.assert_allclose(result.asnumpy(), block(*inputs).asnumpy(), atol=1e-5)


def test_layers_pooling_and_length(tmp_path, inputs):
    block = make('BertModel', use_pooler=False)
    block.save_pretrained(str(tmp_path / 'model'))
    common = ['--model_name', str(tmp_path / 'model'), '--output_dir', str(tmp_path / 'out'),
              '--seq_length', '8']  # fmt: skip
    module.main(['--task', 'model', '--all_layers', *common])
    assert len(load(tmp_path / 'out', 'model')(*inputs)) == 2
    module.main(['--task', 'sentence_embedding', '--pooling', 'cls', '--normalize', *common])
    result = load(tmp_path / 'out', 'sentence_embedding')(*inputs).asnumpy()
    first = block(*inputs)[:, 0].asnumpy()
    wanted = first / np.linalg.norm(first, axis=1, keepdims=True)
    np.testing.assert_allclose(result, wanted, atol=1e-5)


DECODER = {'n_embd': 8, 'n_layer': 2, 'n_head': 2, 'n_positions': 24, 'n_ctx': 24}
OTHERS = [
    (gpt2.GPT2Model, gpt2.GPT2Config(40, **DECODER), 'model'),
    (gpt2.GPT2LMHeadModel, gpt2.GPT2Config(40, **DECODER), 'language_model'),
    (gpt2.GPT2DoubleHeadsModel, gpt2.GPT2Config(40, **DECODER), 'multiple_choice'),
    (gpt.OpenAIGPTModel, gpt.OpenAIGPTConfig(40, **DECODER), 'model'),
    (gpt.OpenAIGPTLMHeadModel, gpt.OpenAIGPTConfig(40, **DECODER), 'language_model'),
    (gpt.OpenAIGPTDoubleHeadsModel, gpt.OpenAIGPTConfig(40, **DECODER), 'multiple_choice'),
    *[(kind, transfo_xl.TransfoXLConfig(40, cutoffs=[10], d_model=8, d_embed=8, n_head=2, d_head=4,
                                        d_inner=16, n_layer=2, tgt_len=4, mem_len=4), task)
      for kind, task in ((transfo_xl.TransfoXLModel, 'model'),
                         (transfo_xl.TransfoXLLMHeadModel, 'language_model'))],
]  # fmt: skip


@pytest.mark.parametrize('kind, config, task', OTHERS)
def test_other_families(tmp_path, kind, config, task):
    block = kind(config)
    block.initialize(mx.init.Normal(0.3))
    block.save_pretrained(str(tmp_path / 'model'))
    module.main(['--task', task, '--model_name', str(tmp_path / 'model'), '--output_dir',
                 str(tmp_path / 'out'), '--seq_length', '8'])  # fmt: skip
    names = [f'{task}-0000.params', f'{task}-SHA256SUMS', f'{task}-symbol.json']
    assert sorted(os.listdir(tmp_path / 'out')) == names


@pytest.mark.parametrize(
    'message, arguments',
    [
        ('--precision int8 is for ONNX', ['--precision', 'int8']),
        ('--optimize is for ONNX', ['--optimize']),
        ('--dtype bfloat16 is for --format symbol', ['--format', 'onnx', '--dtype', 'bfloat16']),
        ('--all_layers is for --task model', ['--all_layers']),
        ('--pooling cls is for --task sentence_embedding', ['--pooling', 'cls']),
        ('--normalize is for --task sentence_embedding', ['--normalize']),
        ('--num_classes is not for masked_lm', ['--task', 'masked_lm', '--num_classes', '3']),
    ],
)
def test_flags_that_do_not_go_together(tmp_path, classifier, message, arguments):
    with pytest.raises(InputError, match=message):
        module.main(['--task', 'classification', '--model_name', classifier[1], '--output_dir',
                     str(tmp_path / 'out'), *arguments])  # fmt: skip


def test_task_of_another_family(tmp_path, classifier):
    with pytest.raises(UnknownNameError, match="'language_model'"):
        module.main(['--task', 'language_model', '--model_name', classifier[1], '--output_dir',
                     str(tmp_path / 'out')])  # fmt: skip


def test_unknown_task(capsys):
    with pytest.raises(SystemExit):
        module.main(['--task', 'translation'])
    assert 'invalid choice' in capsys.readouterr().err


def test_short_names_of_models(tmp_path, small, inputs):
    module.main(['--task', 'classification', '--model_name', 'bert-large-cased', '--vocab_size',
                 '40', '--output_dir', str(tmp_path), '--seq_length', '8'])  # fmt: skip
    assert load(tmp_path, 'classification')(*inputs).shape == (3, 2)
