"""Tokenizers for language models against the originals': every character, drawn and real texts."""

import importlib.util
import itertools
import re

import pytest
from json_files import cases

from gpt.tokenizer import OpenAIGPTTokenizer
from gpt2.tokenizer import GPT2Tokenizer
from transfo_xl.tokenizer import TransfoXLTokenizer

torch = pytest.importorskip('torch')  # the original's package imports it
gpt_original = pytest.importorskip('pytorch_pretrained_bert.tokenization_openai')
gpt2_original = pytest.importorskip('pytorch_pretrained_bert.tokenization_gpt2')
words_original = pytest.importorskip('pytorch_pretrained_bert.tokenization_transfo_xl')
hypothesis = pytest.importorskip('hypothesis')
st = hypothesis.strategies
pytestmark = pytest.mark.peers

SPECIAL = ['_start_', '_delimiter_', '_classify_', '\u2603']
ODD = cases('odd_texts')['characters of lm']
PIECES = ["'s", "n't", "'LL", '</w>', '<unk>', '<|endoftext|>', ' the', 'x' * 300, '\n\n  ']
texts = st.lists(
    st.one_of(st.sampled_from(ODD), st.characters(), st.sampled_from([*PIECES, *SPECIAL])),
    max_size=30,
).map(''.join)
fuzz = hypothesis.settings(max_examples=400, deadline=None, database=None)


class OriginalGPT2(gpt2_original.GPT2Tokenizer):
    """With bytes where 0.6.2 takes a text's characters for them, as the release has it."""

    def tokenize(self, text):
        words = gpt2_original.re.findall(self.pat, text)
        symbols = (''.join(self.byte_encoder[byte] for byte in w.encode()) for w in words)
        return [piece for word in symbols for piece in self.bpe(word).split(' ')]


@pytest.fixture(scope='module')
def released(data_dir):
    """(ours, original) of each family, with the released vocabularies."""
    gpt, gpt2 = data_dir / 'vocab' / 'openai-gpt', data_dir / 'vocab' / 'gpt2'
    gpt_files = str(gpt / 'encoder_bpe_40000.json'), str(gpt / 'vocab_40000.bpe')
    gpt2_files = str(gpt2 / 'encoder.json'), str(gpt2 / 'vocab.bpe')
    ours, ours_2 = OpenAIGPTTokenizer.from_pretrained(gpt), GPT2Tokenizer.from_pretrained(gpt2)
    return {
        'gpt': (ours, gpt_original.OpenAIGPTTokenizer(*gpt_files)),
        'gpt2': (ours_2, OriginalGPT2(*gpt2_files)),
    }


@pytest.fixture(scope='module', params=['gpt', 'gpt2'])
def pair(request, released):
    has_spacy = all(importlib.util.find_spec(name) for name in ('ftfy', 'spacy'))
    if request.param == 'gpt' and has_spacy:
        pytest.skip("spaCy is installed, which the original can't load by its old name")
    return released[request.param]


@pytest.mark.data
def test_every_character_in_several_contexts(pair):
    ours, original = pair
    codes = itertools.chain(range(0x3100), range(0x3100, 0x32000, 37), range(0xE000, 0x11000, 3))
    codes = itertools.chain(codes, range(0x1F000, 0x1FB00), range(0xE0000, 0x110000, 997))
    chars = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    for start in range(0, len(chars), 1000):
        lines = [f"{c} a{c}b{c}{c}.{c} e\u0301{c}\u00e9 {c}'s 1{c}2" for c in chars[start:][:1000]]
        rows = ours.encode_batch(lines, pad=False)['input_ids']
        for line, row in zip(lines, rows):
            assert row.tolist() == original.encode(line), ascii(line)


@pytest.mark.data
@fuzz
@hypothesis.given(text=texts)
def test_drawn_texts(pair, text):
    ours, original = pair
    # the original's GPT-2 can't encode lone surrogates; ours replaces them
    plain = re.sub('[\ud800-\udfff]', '\ufffd', text)
    want = original.tokenize(plain)
    ids = original.convert_tokens_to_ids(want)
    assert ours.tokenize(text) == want
    assert ours.encode(text) == ours.convert_tokens_to_ids(want) == ids
    assert ours.decode(ids) == original.decode(ids)


@pytest.mark.data
@hypothesis.settings(fuzz, max_examples=60)  # each makes the tables anew
@hypothesis.given(text=texts, special=st.lists(st.sampled_from(SPECIAL), unique=True))
def test_drawn_texts_with_special_tokens(pair, text, special):
    ours, original = pair
    ours.set_special_tokens(special)
    original.set_special_tokens(special)
    if hasattr(original, 'nlp'):
        original.nlp.never_split = special  # which the original leaves when there are none
    plain = re.sub('[\ud800-\udfff]', '\ufffd', text)
    try:
        assert len(ours) == len(original)
        assert ours.encode(text) == original.encode(plain)
        tokens = [*special, *original.tokenize(plain)]
        ids = original.convert_tokens_to_ids(tokens)
        assert ours.convert_tokens_to_ids(tokens) == ids
        assert ours.convert_ids_to_tokens(ids, True) == original.convert_ids_to_tokens(ids, True)
    finally:
        ours.set_special_tokens(None)
        original.set_special_tokens(None)


words = st.sampled_from(['a', 'b', 'The', 'the', '<unk>', '<eos>', '\u4e2d', 'x\u00a0y', '  '])
lines_of_words = st.lists(st.lists(words).map(' '.join))
options_of_words = st.fixed_dictionaries(
    {
        'special': st.sampled_from([[], ['<eos>'], ['<unk>', '<eos>'], ['<eos>', '<unk>', '<S>']]),
        'min_freq': st.integers(0, 3),
        'max_size': st.none() | st.integers(0, 4),
        'lower_case': st.booleans(),
        'delimiter': st.sampled_from([None, ' ', 'a']),
    }
)


@fuzz
@hypothesis.given(
    lines=lines_of_words,
    other=lines_of_words,
    options=options_of_words,
    eos=st.tuples(st.booleans(), st.booleans()),
)
def test_drawn_vocabularies_of_words(tmp_path_factory, lines, other, options, eos):
    folder = tmp_path_factory.mktemp('words')
    path = folder / 'text.txt'
    path.write_text('\n'.join(lines), encoding='utf-8')
    ours, original = TransfoXLTokenizer(**options), words_original.TransfoXLTokenizer(**options)
    for each in (ours, original):
        each.count_file(str(path), add_eos=eos[0])
        each.build_vocab()
    assert ours.idx2sym == original.idx2sym
    torch.save(original.__dict__, folder / 'vocab.bin')
    read = TransfoXLTokenizer.from_pretrained(folder / 'vocab.bin')
    assert read.idx2sym == ours.idx2sym and read.counter == ours.counter == original.counter
    path.write_text('\n'.join(other), encoding='utf-8')
    try:
        want = [row.tolist() for row in original.encode_file(str(path), False, False, *eos)]
    except ValueError as error:
        for each in (ours, read):
            with pytest.raises(ValueError):
                each.encode_file(path, False, False, *eos)
        assert 'no <unk> token' in str(error)
        return
    for each in (ours, read):
        assert [row.tolist() for row in each.encode_file(path, False, False, *eos)] == want
