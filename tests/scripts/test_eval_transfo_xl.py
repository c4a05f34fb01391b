"""scripts/eval_transfo_xl.py end to end, with a tiny random model."""

import mxnet as mx
import numpy as np
import pytest
import script_runs
import tiny
from script_runs import SCRIPTS, read_json
from toy_data import make_corpus

from transfo_xl import TransfoXLLMHeadModel
from transfo_xl.tokenizer import TransfoXLTokenizer

SCRIPT = SCRIPTS / 'eval_transfo_xl.py'
LENGTHS = ['--batch_size', '2', '--tgt_len', '5', '--mem_len', '7']


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """Texts, their corpus, and a model with its vocabulary."""
    folder = tmp_path_factory.mktemp('data')
    corpus = make_corpus(folder / 'texts')
    corpus.save_pretrained(folder / 'corpus')
    sizes = {'div_val': 2, 'same_length': False, 'init_std': 0.3, 'proj_init_std': 0.3}
    model = tiny.make(TransfoXLLMHeadModel, len(corpus.vocab), **sizes)
    model.save_pretrained(str(folder / 'model'), corpus.vocab)
    return folder


def run(script, data, output, *argv):
    model = ['--model_name', data / 'model', '--work_dir', output]
    return script_runs.run(script, *model, *LENGTHS, *argv)


def results_of(output):
    return read_json(output)['results']


def nll_by_hand(data, tokens, mem_len=7, clamp_len=1000, same_length=False):
    """Losses of one stream, segment after segment."""
    model = TransfoXLLMHeadModel.from_pretrained(
        str(data / 'model'), mem_len=mem_len, clamp_len=clamp_len, same_length=same_length
    )
    losses, mems = [], None
    for start in range(0, len(tokens) - 1, 5):
        words, labels = tokens[start : start + 5], tokens[start + 1 : start + 6]
        words = mx.nd.array([words[: len(labels)]])
        loss, mems = model(words, mems, labels=mx.nd.array([labels]))
        losses += loss[0].asnumpy().tolist()
    return losses


def streams(data, name):
    tokenizer = TransfoXLTokenizer.from_pretrained(data / 'model')
    tokens = tokenizer.encode_file(data / 'texts' / f'{name}.txt', ordered=True).tolist()
    half = len(tokens) // 2
    return [tokens[:half], tokens[half : 2 * half]], tokenizer.sym2idx['<eos>']


@pytest.mark.parametrize('options', [{}, {'clamp_len': 3}, {'mem_len': 0}, {'same_length': True}])
def test_perplexity_is_that_of_a_memory_carried_on(script, data, tmp_path, options):
    flags = []
    for name, value in options.items():
        flags += [f'--{name}'] if value is True else [f'--{name}', value]
    assert run(script, data, tmp_path, '--dataset', data / 'texts', *flags) == 0
    parts, end = streams(data, 'test')
    total = sum(sum(nll_by_hand(data, part, **options)) for part in parts)
    labels = [label for part in parts for label in part[1:]]
    words = sum(label != end for label in labels)
    found = results_of(tmp_path)['test']
    assert (found['tokens'], found['words']) == (len(labels), words)
    assert found['loss'] == pytest.approx(total / len(labels), rel=1e-5)
    assert found['perplexity'] == pytest.approx(np.exp(total / len(labels)), rel=1e-4)
    assert found['word_perplexity'] == pytest.approx(np.exp(total / words), rel=1e-4)


def test_splits_corpora_and_files_agree(script, data, tmp_path):
    reports = []
    for dataset in ('texts', 'corpus'):
        folder = data / dataset
        assert run(script, data, tmp_path, '--dataset', folder, '--split', 'all') == 0
        reports.append(results_of(tmp_path))
    for split in ('valid', 'test'):
        losses = [report[split]['loss'] for report in reports]
        path = data / 'texts' / f'{split}.txt'
        assert run(script, data, tmp_path, '--text_file', path) == 0
        losses.append(results_of(tmp_path)[f'{split}.txt']['loss'])
        assert losses == pytest.approx([losses[0]] * 3, rel=1e-6)
