"""Tokens against pytorch-pretrained-bert's: every character, drawn texts, real text."""

import itertools
import json

import pytest
from json_files import cases

from bert.tokenizer import BertTokenizer, WordpieceTokenizer
from model_zoo.tokenization.vocab import load_vocab

pytest.importorskip('torch')  # the original's package imports it
originals = pytest.importorskip('pytorch_pretrained_bert.tokenization')
hypothesis = pytest.importorskip('hypothesis')
st = hypothesis.strategies
pytestmark = pytest.mark.peers

SPECIAL = ['[UNK]', '[SEP]', '[PAD]', '[CLS]', '[MASK]']

# characters whose treatment is special somewhere: here, in the original or in the Rust library
ODD = cases('odd_texts')['characters']
texts = st.lists(
    st.one_of(
        st.sampled_from(ODD),
        st.characters(),
        st.sampled_from([*SPECIAL, '[unk]', '[Sep]', '##', 'the', ' ', 'x' * 99, 'y' * 101]),
    ),
    max_size=30,
).map(''.join)
fuzz = hypothesis.settings(max_examples=400, deadline=None, database=None)


@pytest.fixture(scope='module')
def vocab_file(fixtures, tmp_path_factory):
    tokens = json.loads((fixtures / 'tokenizer_cases.json').read_text())['vocab']
    odd = [char for char in ODD if len(char.split()) == 1 and not '\ud800' <= char <= '\udfff']
    tokens += [token for token in odd if token not in tokens]
    tokens += [f'##{token}' for token in odd if f'##{token}' not in tokens]
    path = tmp_path_factory.mktemp('vocab') / 'vocab.txt'
    path.write_text(''.join(f'{token}\n' for token in tokens), encoding='utf-8')
    return str(path)


@pytest.fixture(scope='module', params=[True, False], ids=['uncased', 'cased'])
def pair(request, vocab_file):
    return (
        BertTokenizer(vocab_file, do_lower_case=request.param),
        originals.BertTokenizer(vocab_file, do_lower_case=request.param),
    )


def test_every_character_in_several_contexts(pair):
    ours, original = pair
    # the planes with characters of many kinds, and places in the uniform ones
    codes = itertools.chain(range(0x11000), range(0x11000, 0x32000, 7), range(0xE0000, 0xE0200))
    codes = itertools.chain(codes, range(0x32000, 0x110000, 997), range(0x10FFF0, 0x110000))
    while True:
        chars = [chr(code) for code in itertools.islice(codes, 5000)]
        if not chars:
            break
        lines = [f'{c} a{c}b{c}{c}.{c} [SEP]{c} e\u0301{c}\u00e9\u0391{c}\u03a3' for c in chars]
        batch = ours.encode_batch(lines, pad=False, add_special_tokens=False)
        for number, line in enumerate(lines):
            words = original.basic_tokenizer.tokenize(line)
            assert batch[number].words == words, ascii(line)
            pieces = [p for word in words for p in original.wordpiece_tokenizer.tokenize(word)]
            assert batch[number].tokens == pieces, ascii(line)


@fuzz
@hypothesis.given(text=texts)
def test_drawn_texts(pair, text):
    ours, original = pair
    want = original.tokenize(text)
    assert ours.tokenize(text) == want
    assert ours.basic_tokenizer.tokenize(text) == original.basic_tokenizer.tokenize(text)
    encoding = ours.encode(text, add_special_tokens=False)
    assert encoding.tokens == want
    assert encoding.words == original.basic_tokenizer.tokenize(text)
    # both roads lead to the same places
    aligned = [
        (word, (min(spans)[0], max(end for _, end in spans)))
        for word, spans in ours.basic_tokenizer.align(text)
    ]
    assert [word for word, _ in aligned] == encoding.words
    for (start, end), number in zip(encoding.offsets, encoding.word_ids):
        first, last = aligned[number][1]
        assert first <= start < end <= last
    by_word = {}
    for span, number in zip(encoding.offsets, encoding.word_ids):
        by_word.setdefault(number, []).append(span)
    for number, spans in by_word.items():
        cover = min(start for start, _ in spans), max(end for _, end in spans)
        assert cover == aligned[number][1]


@fuzz
@hypothesis.given(
    text=st.text('ab# .\u00e9\u4e2d\u2028\t[UNK]', max_size=40),
    vocab=st.sets(st.text('ab#\u00e9\u4e2d[UNK]', min_size=1, max_size=4), min_size=1),
    longest=st.integers(1, 12),
)
def test_drawn_wordpiece_vocabularies(text, vocab, longest):
    ours = WordpieceTokenizer(vocab, max_input_chars_per_word=longest)
    original = originals.WordpieceTokenizer(vocab, max_input_chars_per_word=longest)
    assert ours.tokenize(text) == original.tokenize(text)


@pytest.mark.data
@pytest.mark.parametrize('lower', [True, False], ids=['uncased', 'cased'])
@pytest.mark.parametrize('name', ['bert-uncased', 'bert-chinese'])
def test_every_line_of_the_real_data(data_dir, name, lower):
    path = str(data_dir / 'vocab' / name / 'vocab.txt')
    ours = BertTokenizer(path, do_lower_case=lower)
    original = originals.BertTokenizer(path, do_lower_case=lower)
    read = load_vocab(path).token_to_idx
    # U+2028 is a token in the Chinese file; the original reads it as an empty one
    assert {token.strip(): place for token, place in read.items()} == dict(original.vocab)
    count = 0
    for file in sorted(data_dir.rglob('*.*')):  # an original's cache has no suffix
        if not file.is_file() or file.suffix == '.model':
            continue
        lines = sorted(set(file.read_text(encoding='utf-8')[:150000].split('\n')))
        for start in range(0, len(lines), 5000):
            part = lines[start : start + 5000]
            batch = ours.encode_batch(part, pad=False, add_special_tokens=False)
            for line, row in zip(part, batch):
                want = original.tokenize(line)
                assert row.tokens == want, (file, line)
                assert row.input_ids.tolist() == [original.vocab[token] for token in want]
            count += len(part)
    assert count > 1000
