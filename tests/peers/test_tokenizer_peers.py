"""Tokens against pytorch-pretrained-bert's: every character, drawn texts, real text."""

import itertools
import json

import pytest

from bert.tokenizer import BertTokenizer, WordpieceTokenizer
from model_zoo.tokenization.vocab import load_vocab

pytest.importorskip('torch')  # the original's package imports it
originals = pytest.importorskip('pytorch_pretrained_bert.tokenization')
hypothesis = pytest.importorskip('hypothesis')
st = hypothesis.strategies
pytestmark = pytest.mark.peers

SPECIAL = ['[UNK]', '[SEP]', '[PAD]', '[CLS]', '[MASK]']

# characters whose treatment is special somewhere: here, in the original or in the Rust library
ODD = (
    'aAbz09 .,-\'"#[]`^$\t\n\r\0\x01\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad\xb7\xdf\xe9\xc9\u0130\u0131'
    '\u0300\u0301\u0323\u0345\u0378\u037e\u0387\u03a3\u03c2\u03c3\u05d0\u05bc\u0627\u064b\u0939'
    '\u094d\u0e31\u1100\u1161\u11a8\u1680\u180e\u1e9e\u1fef\u2003\u200b\u200d\u200f\u2028\u2029'
    '\u2126\u212a\u2764\u302e\u302f\u3000\u3002\u304c\u3400\u4e2d\u9fff\ua960\uac01\ud7a3\ud800'
    '\udfff\ue000\uf900\ufb01\ufdd0\ufe0f\ufeff\uff01\uff21\ufffd\uffff\U0001d165\U0001d16d'
    '\U0001f1e9\U0001f600\U00020000\U0002f800\U000e0001\U0010ffff'
)
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
