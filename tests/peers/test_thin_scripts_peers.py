"""The files named as pytorch-pretrained-bert's train as its BertAdam does: weights after steps."""

import numpy as np
import pytest
import tiny
from bert_compare import grouped
from command_flags import main_of
from script_runs import ROOT, read_json, run

import bert
from model_zoo.opening import open_model

torch = pytest.importorskip('torch')
TorchLike = pytest.importorskip('mxnet_pretrained_bert.torch_like').TorchLike
ppb = pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore')]

WORDS = ['good', 'bad', 'film', 'a', 'the', 'very']
STEPS, RATE, WARMUP, LENGTH = 7, 0.005, 0.25, 12


@pytest.fixture
def data(tmp_path):
    """A model without dropout, whose gradients are large, and as many reviews as a batch has."""
    tokenizer = bert.BertTokenizer(tiny.write_words(tmp_path, WORDS))
    sizes = dict.fromkeys(('hidden_dropout_prob', 'attention_probs_dropout_prob'), 0.0)
    sizes.update(max_position_embeddings=LENGTH, initializer_range=0.4, num_labels=2)
    model = bert.BertForSequenceClassification(tiny.bert_config(len(tokenizer.vocab), **sizes))
    np.random.seed(3)
    model.initialize()
    model.save_pretrained(str(tmp_path / 'model'), tokenizer)
    model.save_pretrained(str(tmp_path / 'theirs'), tokenizer, format='pytorch')
    random = np.random.RandomState(0)
    rows = []
    for number in range(12):
        words = random.choice(WORDS[2:], random.randint(2, 8)).tolist()
        rows.append((' '.join([*words, WORDS[1 - number % 2]]), number % 2))
    (tmp_path / 'data').mkdir()
    for name in ('train', 'dev'):
        lines = ['sentence\tlabel', *(f'{text}\t{label}' for text, label in rows)]
        (tmp_path / 'data' / f'{name}.tsv').write_text('\n'.join(lines) + '\n')
    return tmp_path, tokenizer, rows


def train_theirs(folder, tokenizer, rows, clips_together=False):
    """The steps of that program's run_classifier.py, all examples in a batch."""
    model = ppb.BertForSequenceClassification.from_pretrained(str(folder / 'theirs'), num_labels=2)
    norm = -1 if clips_together else 1.0
    optimizer = ppb.BertAdam(
        grouped(model), lr=RATE, warmup=WARMUP, t_total=STEPS, max_grad_norm=norm
    )
    batch = tokenizer.encode_batch([text for text, _ in rows], round_to=LENGTH, max_length=LENGTH)
    words = torch.tensor(np.asarray(batch.input_ids)).long()
    mask = torch.arange(LENGTH) < torch.tensor(np.asarray(batch.valid_length)).long()[:, None]
    labels = torch.tensor([label for _, label in rows])
    for _ in range(STEPS):
        loss = model(words, torch.zeros_like(words), mask.long(), labels)
        loss.backward()
        if clips_together:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.numpy() for name, value in model.state_dict().items()}


def largest_difference(ours, theirs):
    names = {'gamma': 'weight', 'beta': 'bias'}
    theirs = {
        '.'.join(names.get(part, part) for part in name.split('.')): value
        for name, value in theirs.items()
    }
    assert ours.keys() == theirs.keys()
    return max(np.abs(ours[name] - theirs[name]).max() for name in ours)


def test_run_classifier(data):
    folder, tokenizer, rows = data
    main = main_of('scripts/originals/pytorch_pretrained_bert/run_classifier.py', ROOT)
    words = (
        f'--task_name SST-2 --do_train --do_eval --data_dir {folder}/data --bert_model '
        f'{folder}/model --max_seq_length {LENGTH} --train_batch_size {len(rows)} '
        f'--learning_rate {RATE} --warmup_proportion {WARMUP} --num_train_epochs {STEPS} '
        f'--output_dir {folder}/out'
    )
    assert run(main, *words.split()) == 0
    assert read_json(folder / 'out')['training']['steps'] == STEPS
    block = open_model(str(folder / 'model'), 'classification').block
    block.load_parameters(str(folder / 'out' / f'model_bert_SST_{STEPS - 1}.params'))
    ours = {name: value.asnumpy() for name, value in TorchLike.state_dict(block).items()}
    assert largest_difference(ours, train_theirs(folder, tokenizer, rows)) < 5e-5
    assert largest_difference(ours, train_theirs(folder, tokenizer, rows, True)) > 1e-2
