"""Tokenizers: the original's tokens, offsets, batches, GluonNLP's transform, bad input."""

import json
import logging
import random

import gluonnlp
import pytest
from refusals import refuses
from tiny import SPECIAL, learn_pieces

from bert.tokenizer import BasicTokenizer, BertSPTokenizer, BertTokenizer, WordpieceTokenizer
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tokenization.chunks import SentenceEncoder
from model_zoo.tokenization.vocab import load_vocab, make_vocab, save_vocab


@pytest.fixture(scope='module')
def expected(fixtures):
    return json.loads((fixtures / 'tokenizer_cases.json').read_text())


@pytest.fixture(scope='module')
def vocab_file(expected, tmp_path_factory):
    path = tmp_path_factory.mktemp('vocab') / 'vocab.txt'
    path.write_text(''.join(f'{token}\n' for token in expected['vocab']), encoding='utf-8')
    return path


@pytest.fixture(scope='module')
def tokenizer(vocab_file):
    return BertTokenizer(vocab_file)


@pytest.fixture(scope='module')
def texts(expected):
    return [case['text'] for case in expected['cases'] if case['lower']]


# the original's tokens


def test_tokens_and_ids_are_the_originals(expected, vocab_file):
    tokenizers = {lower: BertTokenizer(vocab_file, do_lower_case=lower) for lower in (True, False)}
    for case in expected['cases']:
        tokenizer = tokenizers[case['lower']]
        assert tokenizer.tokenize(case['text']) == case['tokens']
        assert tokenizer.basic_tokenizer.tokenize(case['text']) == case['words']
        ids = tokenizer.encode(case['text'], add_special_tokens=False).input_ids
        assert ids.tolist() == case['ids'] == tokenizer.convert_tokens_to_ids(case['tokens'])


def test_tokens_without_basic_tokenization_are_the_originals(expected, vocab_file):
    tokenizer = BertTokenizer(vocab_file, do_basic_tokenize=False)
    pieces = WordpieceTokenizer(tokenizer.vocab)
    for case in expected['cases']:
        assert tokenizer.tokenize(case['text']) == case['tokens_without_basic']
        assert pieces.tokenize(case['text']) == case['tokens_without_basic']


def test_words_that_are_never_split():
    text = '[A.b] x[A.b] \u00c9.t e.t E.T [SEP] Foo'
    assert BasicTokenizer(never_split=()).tokenize('[SEP]') == ['[', 'sep', ']']
    basic = BasicTokenizer(never_split=['[A.b]', 'e.t', 'Foo'])
    # the original leaves a word alone, too, that is one of them in lower case
    assert basic.tokenize(text) == '[A.b] x [ a . b ] e.t e.t e.t [ sep ] Foo'.split()


def test_wordpiece_vocabularies_and_unknown_words():
    for vocab in ({'un': 7, '##able': 3}, ['un', '##able'], load_vocab([*SPECIAL, 'un', '##able'])):
        pieces = WordpieceTokenizer(vocab, unk_token='<unk>', max_input_chars_per_word=8)
        found = pieces.tokenize(' unable\tunables\n<unk>able un<unk>')
        assert found == 'un ##able <unk> <unk> <unk>'.split()
        assert pieces.tokenize('ununununu') == ['<unk>']
        assert pieces.tokenize('') == []


def test_lone_surrogates_become_fffd(tokenizer):
    assert tokenizer.tokenize('the\ud800 \udfff fox') == ['the', 'fox']
    plain = load_vocab([*SPECIAL, 'a', '##\ufffd'])
    spaced = BertTokenizer.from_vocab(plain, do_basic_tokenize=False)
    assert spaced.tokenize('a\udc00 a\ufffd a') == ['a', '##\ufffd', 'a', '##\ufffd', 'a']


# offsets and words


def test_offsets_lead_back_to_the_text(tokenizer):
    text = ' The caf\u00e9 cafe\u0301s\u200b\u4e2d\u56fd, \u0130t [SEP] \U0001f600x'
    encoding = tokenizer.encode(text)
    found = [text[start:end] for start, end in encoding.offsets[1:-1]]
    assert encoding.offsets[0] == encoding.offsets[-1] == (0, 0)
    words = {}
    for piece, number in zip(found, encoding.word_ids[1:-1]):
        words[number] = words.get(number, '') + piece
    expected = 'The caf\u00e9 cafe\u0301s \u4e2d \u56fd , \u0130t [SEP] \U0001f600x'
    assert list(words.values()) == expected.split()
    assert encoding.words == 'the cafe cafes \u4e2d \u56fd , it [SEP] \U0001f600x'.split()
    assert encoding.tokens[-2] == '[UNK]' and found[-1] == '\U0001f600x'


# batches and truncation


@pytest.mark.parametrize('max_length', [3, 4, 7, 8, 16])
def test_pairs_are_cut_as_gluonnlp_cuts_them(tokenizer, max_length):
    words = ['the', 'fox', 'unaffable', 'caf\u00e9', '.', '\u4e2d']
    transform = gluonnlp.data.BERTSentenceTransform(tokenizer, max_length, pair=True)
    texts = [' '.join(random.choices(words, k=random.randrange(12))) for _ in range(200)]
    texts, pairs = texts[:100], texts[100:]
    batch = tokenizer.encode_batch(texts, pairs, max_length=max_length, round_to=max_length)
    pieces = [tokenizer.encode_batch(side, add_special_tokens=False) for side in (texts, pairs)]
    for number, line in enumerate(zip(texts, pairs)):
        ids, length, types = transform(line)
        assert batch.input_ids[number].tolist() == ids.tolist()
        assert batch.token_types[number].tolist() == types.tolist()
        assert batch.valid_length[number] == length
        kept = sum(token not in ('[CLS]', '[SEP]') for token in batch.tokens[number])
        assert batch.truncated[number] == sum(len(side[number]) for side in pieces) - kept
    assert batch.truncated.any()


# the rest of the originals' methods


def test_too_long_sequences_warn(vocab_file, caplog):
    tokenizer = BertTokenizer(vocab_file, max_len=4)
    with caplog.at_level(logging.WARNING):
        tokenizer.convert_tokens_to_ids(['the'] * 4)
        tokenizer.encode('the fox')
        tokenizer.encode('the fox fox', max_length=4)
    assert not caplog.records
    tokenizer.convert_tokens_to_ids(['the'] * 5)
    tokenizer.encode_batch(['the', 'the fox fox'])
    assert len(caplog.records) == 2
    assert all('5 ids is longer than the 4' in record.message for record in caplog.records)


# vocabularies


BAD = [[''], ['', ''], ['a', '', *SPECIAL], ['[PAD]', '[UNK]', '[CLS]', 'a'], [*SPECIAL, '\xfe']]


@pytest.mark.parametrize('lines', BAD)
def test_bad_vocabularies(tmp_path, lines):
    path = tmp_path / 'v.txt'
    path.write_text('\n'.join(lines), 'latin-1')
    with refuses(says='v.txt'):
        BertTokenizer(path)


def test_tokens_on_several_lines(tmp_path, caplog):
    """As the original takes them: the last line is the id, and all lines keep their number."""
    path = tmp_path / 'vocab.txt'
    path.write_text('\n'.join(['a', *SPECIAL, 'a', '##b', 'a', '[MASK]']) + '\n')
    tokenizer = BertTokenizer(path)
    assert "'a' is on lines 1 and 9" in caplog.text
    assert len(tokenizer) == 10 and len(caplog.records) == 1
    cls, sep = (1 + SPECIAL.index(token) for token in ('[CLS]', '[SEP]'))
    assert tokenizer.encode('a ab [MASK]') == [cls, 8, 8, 7, 9, sep]
    assert tokenizer.convert_ids_to_tokens([0, 6, 8]) == ['a', 'a', 'a']
    assert tokenizer.mask_token_id == 9
    tokenizer.save_vocabulary(tmp_path / 'again.txt')
    assert (tmp_path / 'again.txt').read_bytes() == path.read_bytes()
    tokenizer.save_pretrained(tmp_path / 'folder')
    again = BertTokenizer.from_pretrained(tmp_path / 'folder')
    assert again.encode('a ab [MASK]') == tokenizer.encode('a ab [MASK]')


ODD = ['a', ' a', 'a ', ' ', '', 'b\n', '\r', '\u2028', 'c\u2028d', '\x85', '\u2028a', '\t', 'b']


def test_a_vocabulary_is_written_only_if_it_reads_back(tmp_path):
    draw, path, refused = random.Random(0), tmp_path / 'vocab.txt', 0
    for _ in range(300):
        tokens = [*SPECIAL, *draw.sample(ODD, 4)]
        path.write_bytes('\n'.join([*tokens, '']).encode())
        try:
            reads_back = load_vocab(path).idx_to_token == tokens
        except InputError:  # a blank line
            reads_back = False
        ids = {token: number for number, token in enumerate(tokens)}
        try:
            save_vocab(make_vocab(ids, {'unk': '[UNK]'}), tmp_path / 'saved.txt')
        except InputError:
            assert not reads_back
            refused += 1
        else:
            assert reads_back and (tmp_path / 'saved.txt').read_bytes() == path.read_bytes()
    assert 0 < refused < 300


def test_vocabularies_without_padding_or_mask(tmp_path, caplog):
    """As the original takes them, with a warning."""
    path = tmp_path / 'vocab.txt'
    path.write_text('[UNK]\n[CLS]\n[SEP]\na\n')
    tokenizer = BertTokenizer(path)
    assert 'has no [PAD] and no [MASK]; is it whole?' in caplog.text
    assert tokenizer.pad_token is None and tokenizer.mask_token_id is None
    assert tokenizer.encode('a [MASK]') == [1, 3, 0, 2]
    assert tokenizer.encode_batch(['a', 'a a']).input_ids.tolist() == [[1, 3, 2, 0], [1, 3, 3, 2]]
    path.write_text('[UNK]\n[CLS]\n[SEP]\na\n[PAD]\n')
    tokenizer = BertTokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode_batch(['a', 'a a']).input_ids.tolist() == [[1, 3, 2, 4], [1, 3, 3, 2]]
    again = BertTokenizer.from_pretrained(tokenizer.save_vocabulary(tmp_path / 'again.txt'))
    assert again.vocab.token_to_idx == tokenizer.vocab.token_to_idx


def test_from_vocab_takes_gluonnlps_order_and_special_tokens(expected):
    counter = gluonnlp.data.count_tokens(expected['vocab'])
    vocab = gluonnlp.vocab.BERTVocab(counter)
    assert vocab.idx_to_token != expected['vocab']
    tokenizer = BertTokenizer.from_vocab(vocab)
    tokens = ['[CLS]', 'the', 'fox', '[SEP]']
    assert tokenizer.encode('The fox').input_ids.tolist() == vocab[tokens]
    assert tokenizer.vocab is vocab
    bos = gluonnlp.Vocab(counter, unknown_token='[UNK]')
    other = BertTokenizer.from_vocab(bos)
    assert other.encode('fox').tokens == ['<bos>', 'fox', '<eos>'] and other.mask_token_id is None
    with refuses(says='unk'):
        BertTokenizer.from_vocab(gluonnlp.Vocab(counter, unknown_token=None))
    with refuses(says='cls'):
        BertTokenizer.from_vocab(gluonnlp.Vocab(counter, bos_token=None))


def test_from_pretrained_reads_files(vocab_file, tmp_path):
    assert BertTokenizer.from_pretrained(vocab_file).do_lower_case
    cased = tmp_path / 'vocab.txt'
    cased.write_text('\n'.join([*SPECIAL, 'The', 'fox']))
    assert BertTokenizer.from_pretrained(tmp_path).tokenize('The fox') == ['The', 'fox']
    (tmp_path / 'tokenizer_config.json').write_text('{"do_lower_case": tru')
    with refuses(says='tokenizer_config.json'):
        BertTokenizer.from_pretrained(tmp_path)
    (tmp_path / 'tokenizer_config.json').write_text('{"model_max_length": 128}')
    assert BertTokenizer.from_pretrained(tmp_path).max_len == 128
    with refuses(says='nowhere'):
        BertTokenizer.from_pretrained(tmp_path / 'nowhere')
    with pytest.raises(UnknownNameError):
        BertTokenizer.from_pretrained('no-such-bert')


def test_a_name_decides_lower_casing(tmp_path, caplog):
    folder = tmp_path / 'bert_12_768_12_book_corpus_wiki_en_cased'
    folder.mkdir()
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL, 'The', 'fox']))
    tokenizer = BertTokenizer.from_pretrained('bert-base-cased', root=tmp_path)
    assert tokenizer.tokenize('The fox') == ['The', 'fox'] and not caplog.records
    tokenizer = BertTokenizer.from_pretrained('bert-base-cased', root=tmp_path, do_lower_case=True)
    assert not tokenizer.do_lower_case and 'do_lower_case is set to False' in caplog.text


# SentencePiece


@pytest.fixture(scope='module')
def spiece(tmp_path_factory):
    words = ['the', 'quick', 'brown', 'fox', 'jumps', 'over', 'lazy', 'dog', 'unaffable', 'cafe']
    lines = [' '.join(random.Random(n).choices(words, k=8)) + '.' for n in range(200)]
    path = tmp_path_factory.mktemp('spiece') / 'm.model'
    return learn_pieces(path, lines, 60, hard_vocab_limit=False)


def gluonnlp_sp_tokens(path, vocab, lower, texts, monkeypatch):
    """GluonNLP's tokens; newer sentencepiece libraries refuse its call with num_best=0."""
    call = lambda self, sample: self._processor.EncodeAsPieces(sample)  # noqa: E731
    monkeypatch.setattr(gluonnlp.data.SentencepieceTokenizer, '__call__', call)
    return list(map(gluonnlp.data.BERTSPTokenizer(path, vocab, lower=lower), texts))


@pytest.mark.parametrize('lower', [True, False])
def test_sentencepiece_tokens_are_gluonnlps(spiece, texts, lower, monkeypatch):
    vocab = gluonnlp.vocab.BERTVocab.from_sentencepiece(spiece)
    tokenizer = BertSPTokenizer(spiece, vocab, lower=lower)
    encodable = [text for text in texts if not any('\ud800' <= char <= '\udfff' for char in text)]
    encodable += ['The \ud55c fox\ufb01 \u00c9t\u00e9 quick\u0301', '\u0301', '[SEP]']
    want = gluonnlp_sp_tokens(spiece, vocab, lower, encodable, monkeypatch)
    assert [tokenizer(text) for text in encodable] == want
    for text, tokens in zip(encodable, want):
        ids = tokenizer.encode(text, add_special_tokens=False).input_ids
        assert ids.tolist() == vocab[tokens] == tokenizer.convert_tokens_to_ids(tokens)
    assert tokenizer.tokenize('the \udc00 fox\ud800') == tokenizer.tokenize('the fox')


def test_sentencepiece_draws_segmentations(spiece):
    tokenizer = BertSPTokenizer(spiece, num_best=-1, alpha=0.0)
    text = 'unaffable ' * 20
    encoding = tokenizer.encode(text, add_special_tokens=False)
    drawn = {}
    for token, number in zip(encoding.tokens, encoding.word_ids):
        drawn[number] = (*drawn.get(number, ()), token)
    assert len(set(drawn.values())) > 1  # each occurrence has its own
    assert all(''.join(tokens) == '\u2581unaffable' for tokens in drawn.values())
    assert len(encoding.input_ids) == len(encoding.offsets) == len(encoding.tokens)
    # samples of pre-training, too
    _, sizes = SentenceEncoder(tokenizer).encode(['unaffable'] * 20)
    assert len(set(sizes)) > 1
