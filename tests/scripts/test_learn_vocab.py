"""scripts/learn_vocab.py end to end: vocabularies that the tokenizers and the models take."""

import pathlib
import shlex

import mxnet as mx
import pytest
import script_runs
from script_runs import SCRIPTS, read_json
from tiny import SPECIAL

import model_zoo
from bert.tokenizer import BertSPTokenizer, BertTokenizer

SCRIPT = SCRIPTS / 'learn_vocab.py'


@pytest.fixture
def run(script, tmp_path, here):
    return lambda line: script_runs.run(script, *shlex.split(line))


@pytest.fixture
def text(fixtures):
    return str(fixtures / 'pretraining' / 'sample_text.txt')


def try_model(vocab):
    """The vocabulary in a model."""
    hparams = {'num_layers': 1, 'units': 16, 'hidden_size': 32, 'num_heads': 2, 'max_length': 16}
    block, found = model_zoo.get_model(
        'bert_12_768_12',
        vocab=vocab,
        pretrained=False,
        hparam_allow_override=True,
        use_pooler=False,
        use_decoder=False,
        use_classifier=False,
        **hparams,
    )
    block.initialize()
    assert found is vocab and block.config.vocab_size == len(vocab)
    ids = mx.nd.array([[len(vocab) - 1, 0]], dtype='int32')
    assert block(ids, mx.nd.zeros_like(ids)).shape == (1, 2, 16)


def test_wordpiece(run, text):
    assert run(f'--input_file {text} --output_dir out --vocab_size 400') == 0
    tokenizer = BertTokenizer('out/vocab.txt')
    assert tokenizer.vocab.idx_to_token[:5] == SPECIAL and len(tokenizer.vocab) == 400
    assert tokenizer.tokenize('The little man') == ['the', 'little', 'm', '##an']
    found = read_json(pathlib.Path('out'), 'learn_vocab.json')
    measured = found['measured']
    assert found['vocab_size'] == 400 and measured['lines'] == 31
    assert measured['unknown_pieces'] == 0 and 1 < measured['pieces_per_word'] < 2
    try_model(tokenizer.vocab)
    first = pathlib.Path('out/vocab.txt').read_bytes()
    assert run(f'--input_file {text} --output_dir out --vocab_size 400') == 0
    assert pathlib.Path('out/vocab.txt').read_bytes() == first


def test_cased_wordpiece(run, text):
    line = f'--input_file {text} --output_dir out --vocab_size 400'
    assert run(f'{line} --cased --limit_alphabet 60 --min_frequency 3') == 0
    tokens = BertTokenizer('out/vocab.txt', do_lower_case=False).vocab.idx_to_token
    assert 'T' in tokens and len([t for t in tokens if len(t.replace('##', '')) == 1]) <= 120


@pytest.mark.parametrize('flags', ['', '--cased', '--model_type bpe --max_sentences 101'])
def test_sentencepiece(flags, run, text):
    line = f'--kind sentencepiece --input_file {text} --output_dir out --vocab_size 300'
    assert run(f'{line} {flags}') == 0
    tokenizer = BertSPTokenizer('out/spiece.model', lower='cased' not in flags)
    assert tokenizer.vocab.idx_to_token[:5] == SPECIAL and len(tokenizer.vocab) == 300
    assert [tokenizer.vocab[token] for token in SPECIAL] == list(range(5))
    assert tokenizer.vocab.padding_token == '[PAD]' and tokenizer.vocab.unknown_token == '[UNK]'
    pieces = tokenizer.tokenize('The little man')
    assert ''.join(pieces).replace('\u2581', ' ').strip() == (
        'The little man' if 'cased' in flags else 'the little man'
    )
    assert BertSPTokenizer.from_pretrained('out').tokenize('little') == tokenizer.tokenize('little')
    try_model(tokenizer.vocab)


def test_rare_characters_are_left_out(run, text):
    letters = []
    for coverage in ('1', '0.98'):
        line = f'--kind sentencepiece --input_file {text} --output_dir out --vocab_size 200'
        assert run(f'{line} --character_coverage {coverage}') == 0
        tokens = BertSPTokenizer('out/spiece.model').vocab.idx_to_token
        letters.append({token for token in tokens if len(token) == 1})
    assert letters[1] < letters[0]


@pytest.mark.parametrize('kind', ['wordpiece', 'sentencepiece'])
def test_workers_learn_what_one_process_does(kind, run, text, tmp_path, capsys):
    """Byte for byte, however many there are; finished parts are left out."""
    lines = pathlib.Path(text).read_text(encoding='utf-8').splitlines()
    (tmp_path / 'a.txt').write_text('\ufeff' + '\n'.join(lines[:20] * 3), encoding='utf-8')
    more = '\n'.join(['', *lines[20:], 'Çà va, İstanbul'])
    (tmp_path / 'b.txt').write_text(more, encoding='utf-8')
    base = f"--input_file '{tmp_path}/?.txt' --kind {kind} --vocab_size 300"
    name = {'wordpiece': 'vocab.txt', 'sentencepiece': 'spiece.model'}[kind]
    assert run(f'{base} --output_dir out') == 0
    wanted, parts = pathlib.Path('out', name).read_bytes(), {}
    for workers in (1, 2):
        flags = f'{base} --output_dir out{workers} --num_workers {workers} --part_mb 0.001'
        assert run(flags) == 0
        assert pathlib.Path(f'out{workers}', name).read_bytes() == wanted
        files = pathlib.Path(f'out{workers}', 'parts').glob('[ab]*')
        parts[workers] = {path.name: path.read_bytes() for path in files}
    assert parts[1] == parts[2] and len(parts[1]) > 6
    some = sorted(parts[2])[1]
    pathlib.Path('out2', 'parts', some).unlink()
    capsys.readouterr()
    assert run(flags) == 0
    assert f'{len(parts[2]) - 1} of {len(parts[2])} files are there' in capsys.readouterr().err
    assert pathlib.Path('out2', 'parts', some).read_bytes() == parts[2][some]
    assert pathlib.Path('out2', name).read_bytes() == wanted
