"""A foreign tokenizer.json behind the interface of our tokenizers, beside the library itself."""

import json
import pickle

import gluonnlp
import mxnet as mx
import numpy as np
import pytest
import tokenizers
from refusals import refuses
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tokenization import FileTokenizer

LINES = ['the quick brown fox', 'a lazy dog jumps over the caf\u00e9', 'foxes and dogs 123'] * 4
TEXTS = ['The quick fox!', '', '  caf\u00e9\u0301s, \u4e2d\u6587 \U0001f600 dogs']
TEXTS += ['fox [MASK] <mask> dog\nfox', 'a\u00a0b\u2028c \ufb01 \u0130', '\u5b57' * 30]


def word_pieces():
    """As BERT's."""
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    rust = tokenizers.Tokenizer(models.WordPiece(unk_token='[UNK]'))
    rust.normalizer = normalizers.BertNormalizer()
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    rust.train_from_iterator(LINES, trainer)
    rust.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    rust.enable_padding(pad_id=0, length=40)  # both are left aside
    rust.enable_truncation(6)
    return rust


def byte_pairs():
    """As RoBERTa's: two separators, and token types that are all 0."""
    special = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']
    rust = tokenizers.Tokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    options = {'special_tokens': special, 'show_progress': False}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, **options)
    rust.train_from_iterator(LINES, trainer)
    options = {'trim_offsets': True, 'add_prefix_space': False}
    rust.post_processor = processors.RobertaProcessing(('</s>', 2), ('<s>', 0), **options)
    return rust


def unigrams():
    """As XLNet's: special tokens at the end, with a type of their own."""
    rust = tokenizers.Tokenizer(models.Unigram())
    rust.pre_tokenizer = pre_tokenizers.Metaspace()
    rust.decoder = decoders.Metaspace()
    special = ['<unk>', '<s>', '</s>', '<cls>', '<sep>', '<pad>', '<mask>']
    trainer = trainers.UnigramTrainer(
        vocab_size=60, special_tokens=special, unk_token='<unk>', show_progress=False
    )
    rust.train_from_iterator(LINES, trainer)
    rust.post_processor = processors.TemplateProcessing(
        single='$A:0 <sep>:0 <cls>:2',
        pair='$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2',
        special_tokens=[('<sep>', 4), ('<cls>', 3)],
    )
    return rust


@pytest.fixture(scope='module', params=[word_pieces, byte_pairs, unigrams])
def rust(request):
    return request.param()


@pytest.fixture
def tokenizer(rust):
    return FileTokenizer(rust)


def plain(rust):
    """The library's own object without cutting and padding."""
    rust = tokenizers.Tokenizer.from_str(rust.to_str())
    rust.no_padding()
    rust.no_truncation()
    return rust


@pytest.mark.parametrize('special', [True, False])
def test_ids_types_and_offsets_are_the_librarys(rust, tokenizer, special):
    theirs = plain(rust)
    for text in TEXTS:
        want = theirs.encode(text, add_special_tokens=special)
        found = tokenizer.encode(text, add_special_tokens=special)
        assert found == want.ids == found.input_ids.tolist()
        assert found.tokens == want.tokens and found.offsets == want.offsets
        assert found.token_types.tolist() == want.type_ids
        assert found.word_ids == want.word_ids
        assert tokenizer.tokenize(text) == theirs.encode(text, add_special_tokens=False).tokens
    for text, pair in zip(TEXTS, reversed(TEXTS)):
        found = tokenizer.encode(text, pair, add_special_tokens=special)
        if pair:  # an empty one is left out, with its separator
            want = theirs.encode(text, pair, add_special_tokens=special)
            assert found == want.ids and found.offsets == want.offsets
            if special:
                assert found.token_types.tolist() == want.type_ids
        else:
            assert found == tokenizer.encode(text, add_special_tokens=special)


def test_batches_are_padded_and_cut(rust, tokenizer):
    batch = tokenizer.encode_batch(TEXTS, round_to=4)
    assert batch.input_ids.dtype == batch.token_types.dtype == np.int32
    assert batch.input_ids.shape[1] % 4 == 0
    for row, length, encoding in zip(batch.input_ids, batch.valid_length, batch):
        assert row[:length].tolist() == encoding
        assert (row[length:] == tokenizer.pad_token_id).all()
    cut = tokenizer.encode_batch(TEXTS, TEXTS, max_length=9)
    whole = tokenizer.encode_batch(TEXTS, TEXTS)
    assert cut.valid_length.max() == 9 and cut.truncated.any()
    assert (cut.valid_length + cut.truncated == whole.valid_length).all()


def test_text_comes_back(rust, tokenizer):
    ids = tokenizer.encode('the quick fox')
    assert tokenizer.decode(ids, skip_special_tokens=True) == 'the quick fox'
    assert tokenizer.decode(mx.nd.array(ids)) == plain(rust).decode(ids, skip_special_tokens=False)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokens == ids.tokens and tokenizer.convert_tokens_to_ids(tokens) == ids
    assert tokenizer.convert_ids_to_tokens(np.int64(ids[0])) == tokens[0]


def test_special_tokens_and_vocabulary(rust, tokenizer):
    assert tokenizer.convert_tokens_to_ids(tokenizer.pad_token) == tokenizer.pad_token_id
    assert tokenizer.convert_ids_to_tokens(tokenizer.mask_token_id) == tokenizer.mask_token
    vocab = tokenizer.vocab
    assert isinstance(vocab, gluonnlp.Vocab) and len(vocab) == len(tokenizer)
    assert vocab.token_to_idx == rust.get_vocab() and vocab.padding_token == tokenizer.pad_token


def test_roles_come_from_the_files(tmp_path):
    rust = byte_pairs()
    rust.save(str(tmp_path / 'tokenizer.json'))
    usual = FileTokenizer.from_pretrained(tmp_path)
    assert (usual.bos_token, usual.eos_token, usual.cls_token) == ('<s>', '</s>', '<s>')
    (tmp_path / 'special_tokens_map.json').write_text(
        json.dumps({'cls_token': '<s>', 'sep_token': '<mask>', 'mask_token': {'content': '<mask>'}})
    )
    config = {'sep_token': {'content': '</s>'}, 'pad_token': '<not there>', 'eos_token': None}
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps({**config, 'model_max_length': 12}))
    tokenizer = FileTokenizer.from_pretrained(tmp_path)
    assert (tokenizer.cls_token, tokenizer.sep_token) == ('<s>', '</s>')
    assert (tokenizer.mask_token, tokenizer.pad_token_id) == ('<mask>', 1)
    assert tokenizer.max_len == 12
    other = FileTokenizer(tmp_path / 'tokenizer.json', {'pad': '<unk>'}, 5)
    assert (other.pad_token_id, other.max_len) == (3, 5)


def test_saved_files_give_the_same_tokenizer(tokenizer, tmp_path):
    paths = tokenizer.save_pretrained(tmp_path / 'new')
    assert [path.rsplit('/', 1)[1] for path in paths] == ['tokenizer.json', 'tokenizer_config.json']
    again = FileTokenizer.from_pretrained(tmp_path / 'new')
    copy = pickle.loads(pickle.dumps(tokenizer))
    for each in (again, copy):
        assert each.encode_batch(TEXTS).input_ids.tolist() == (
            tokenizer.encode_batch(TEXTS).input_ids.tolist()
        )
        assert each.sep_token == tokenizer.sep_token and each.max_len == tokenizer.max_len


def test_lone_surrogates_are_replaced(tokenizer):
    assert tokenizer.encode('a\ud800b') == tokenizer.encode('a\ufffdb')


def test_ids_that_no_token_has(tmp_path):
    rust = tokenizers.Tokenizer(models.WordLevel({'a': 0, 'b': 4}, unk_token='a'))
    rust.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = FileTokenizer(rust)
    assert len(tokenizer) == 5 and tokenizer.vocab['b'] == 4
    assert tokenizer.encode('b a') == [4, 0] and tokenizer.decode([4, 2, 0]) == 'b a'
    with refuses(says='pad'):
        tokenizer.encode_batch(['a', 'b b'])


def test_bad_input(rust, tokenizer, tmp_path):
    for call in (
        lambda: tokenizer.decode([99999]),
        lambda: tokenizer.decode([-1]),
        lambda: tokenizer.encode(b'a'),
        lambda: FileTokenizer(rust, {'end': 'a'}),
        lambda: FileTokenizer(rust, {'pad': '<nowhere>'}),
        lambda: FileTokenizer.from_pretrained(tmp_path),
    ):
        with pytest.raises((InputError, UnknownNameError)):
            call()
    (tmp_path / 'tokenizer.json').write_text('{"version": "1.0"')
    with refuses(says='tokenizer.json'):
        FileTokenizer.from_pretrained(tmp_path)
