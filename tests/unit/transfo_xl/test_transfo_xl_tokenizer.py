"""Transformer-XL's tokenizer: the original's vocabularies and ids, its files, corpora."""

import json
import shutil
import sys

import numpy as np
import pytest
from refusals import refuses

from model_zoo.errors import InputError
from model_zoo.tokenization import FileTokenizer
from mxnet_pretrained_bert.tokenization_transfo_xl import TransfoXLCorpus, get_lm_corpus
from transfo_xl.tokenizer import TransfoXLTokenizer


@pytest.fixture(scope='module')
def expected(fixtures):
    return json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())


@pytest.fixture(scope='module')
def text_file(expected, tmp_path_factory):
    path = tmp_path_factory.mktemp('words') / 'text.txt'
    path.write_bytes(('\n'.join(expected['words']['lines']) + '\n').encode())
    return path


def counted(path, count_eos=False, **options):
    tokenizer = TransfoXLTokenizer(**options)
    tokenizer.count_file(path, add_eos=count_eos)
    tokenizer.build_vocab()
    return tokenizer


@pytest.fixture
def tokenizer(text_file):
    return counted(text_file, special=['<eos>', '<unk>'])


# the original's ids


def test_vocabularies_and_ids_are_the_originals(expected, text_file):
    unknown = 0
    for case in expected['words']['cases']:
        tokenizer = counted(text_file, case['count_eos'], **case['options'])
        assert tokenizer.idx2sym == case['idx2sym']
        assert list(tokenizer.sym2idx) == case['idx2sym']
        assert tokenizer.decode(range(len(tokenizer)), exclude=[1]) == case['decoded']
        kinds = ((False, False), (True, False), (True, True))
        for (eos, double), want in zip(kinds, case['encoded']):
            if want is None:
                with pytest.raises(InputError):
                    tokenizer.encode_file(text_file, True, add_eos=eos, add_double_eos=double)
                continue
            ids = tokenizer.encode_file(text_file, True, add_eos=eos, add_double_eos=double)
            assert ids.dtype == np.int32 and ids.tolist() == want
            lines = tokenizer.encode_file(text_file, add_eos=eos, add_double_eos=double)
            assert np.concatenate(lines).tolist() == want
            unknown += '<unk>' in tokenizer.convert_ids_to_tokens(ids)
    assert unknown


def test_words_from_a_file(tmp_path):
    path = tmp_path / 'words.txt'
    path.write_text('<S> 3\nthe 2\n<UNK>\n<unk>\ncat\n', encoding='utf-8')
    tokenizer = TransfoXLTokenizer.from_pretrained(path)
    assert tokenizer.idx2sym == ['<S>', 'the', '<UNK>', '<unk>', 'cat']
    assert tokenizer.encode('cat dog', add_double_eos=True) == [0, 4, 2, 0]  # <UNK> before <unk>
    saved = tokenizer.save_vocabulary(tmp_path)
    assert TransfoXLTokenizer.from_pretrained(saved).get_idx('dog') == 2
    path.write_text('the\ncat\n')
    with refuses(says='words.txt'):
        TransfoXLTokenizer.from_pretrained(path)


def test_cutoffs_are_where_the_text_is_covered():
    tokenizer = TransfoXLTokenizer(special=['<unk>'])
    tokenizer.count_sents([['a'] * 90 + ['b'] * 7 + ['c', 'd', 'e']])
    tokenizer.build_vocab()
    assert tokenizer.idx2sym == ['<unk>', 'a', 'b', 'c', 'd', 'e']
    assert tokenizer.cutoffs() == [2, 3]
    tokenizer.count_sents([['a'] * 1000])
    assert tokenizer.cutoffs() == [2]  # neither twice nor all
    with pytest.raises(InputError):
        TransfoXLTokenizer().cutoffs()


# files


def test_saved_vocabulary_goes_on_counting(text_file, tmp_path):
    options = {'lower_case': True, 'min_freq': 2, 'max_size': 7, 'delimiter': ' '}
    tokenizer = counted(text_file, special=['<unk>', '<eos>'], **options)
    (path,) = tokenizer.save_pretrained(tmp_path / 'new')
    again = TransfoXLTokenizer.from_pretrained(tmp_path / 'new')
    assert again.idx2sym == tokenizer.idx2sym and again.counter == tokenizer.counter
    for name, value in options.items():
        assert getattr(again, name) == value
    assert (again.unk_idx, again.eos_idx, again.special) == (0, 1, ['<unk>', '<eos>'])
    assert again.encode_file(text_file, True).tolist() == (
        tokenizer.encode_file(text_file, True).tolist()
    )
    for each in (tokenizer, again):
        each.count_file(text_file)
        each.build_vocab()
    assert again.idx2sym == tokenizer.idx2sym
    assert again.save_vocabulary(tmp_path / 'file.json') == str(tmp_path / 'file.json')
    assert TransfoXLTokenizer.from_pretrained(path, lower_case=False).lower_case is False


@pytest.mark.parametrize('name', ['vocab_zip.bin', 'vocab_legacy.bin', 'vocab.pkl'])
def test_the_originals_files(expected, fixtures, tmp_path, name):
    copy = tmp_path / ('vocab.pkl' if name.endswith('.pkl') else 'vocab.bin')
    shutil.copy(fixtures / 'lm_pickles' / name, copy)
    tokenizer = TransfoXLTokenizer.from_pretrained(tmp_path)
    want = expected['pickles']['transformers_' * name.endswith('.pkl') + 'idx2sym']
    assert tokenizer.idx2sym == want
    assert tokenizer.get_idx('no such') == want.index('<unk>') == tokenizer.unk_idx
    if name.endswith('.bin'):
        assert tokenizer.counter == expected['pickles']['counter']
        assert list(tokenizer.counter) == list(expected['pickles']['counter'])
    for path in (tmp_path, copy):
        assert TransfoXLTokenizer.from_pretrained(path).vocab.idx_to_token == want


# corpora


@pytest.fixture
def data_set(tmp_path):
    for split, text in (('train', 'a b a\nc a\n'), ('valid', 'b a\nd\n'), ('test', 'c\n')):
        (tmp_path / f'{split}.txt').write_text(text)
    return tmp_path


@pytest.mark.parametrize('form', ['native', 'pytorch'])
@pytest.mark.parametrize('name', ['wt2', 'ptb', 'enwik8'])
def test_a_corpus_is_built_saved_and_read(data_set, tmp_path, name, form):
    corpus = get_lm_corpus(data_set, name)
    decoded = corpus.vocab.decode(corpus.valid)
    assert decoded == ('b a d' if name == 'enwik8' else 'b a <eos> d <eos>')
    assert corpus.vocab.lower_case is (name == 'ptb') and corpus.cutoffs == []
    corpus.save_pretrained(tmp_path / 'saved', form)
    again = TransfoXLCorpus.from_pretrained(tmp_path / 'saved')
    assert again.dataset == name and again.vocab.idx2sym == corpus.vocab.idx2sym
    for split in ('train', 'valid', 'test'):
        assert getattr(again, split).dtype == np.int32
        assert getattr(again, split).tolist() == getattr(corpus, split).tolist()
    batches = list(again.get_iterator('train', 1, 3, ext_len=1))
    assert batches[0][0].asnumpy().tolist() == [corpus.train[:3].tolist()]


def test_wikitext_103_counts_the_training_text_only(data_set):
    with refuses(says='unk'):
        get_lm_corpus(data_set, 'wt103')
    corpus = TransfoXLCorpus(special=['<eos>', '<unk>', *map(str, range(20001))])
    corpus.build_corpus(data_set, 'wt103')
    assert corpus.cutoffs == [20000]
    assert corpus.vocab.decode(corpus.valid) == 'b a <eos> <unk> <eos>'


@pytest.mark.parametrize('form', ['native', 'pytorch'])
def test_the_one_billion_word_benchmark(data_set, tmp_path, form):
    folder = data_set / '1-billion-word-language-modeling-benchmark-r13output'
    folder = folder / 'training-monolingual.tokenized.shuffled'
    with refuses(says='1b_word_vocab.txt'):
        get_lm_corpus(data_set, 'lm1b')
    (data_set / '1b_word_vocab.txt').write_text('<S>\n<UNK>\na\nb\nc\n')
    with refuses(says='1-billion-word'):
        get_lm_corpus(data_set, 'lm1b')
    folder.mkdir(parents=True)
    for number in (2, 1):
        (folder / f'news.en-{number}').write_text('a b\n' * number)
    corpus = get_lm_corpus(data_set, 'lm1b')
    assert [path[-1] for path in corpus.train] == ['1', '2']
    assert [line.tolist() for line in corpus.valid] == [[0, 3, 2, 0], [0, 1, 0]]
    corpus.save_pretrained(tmp_path / 'saved', form)
    again = TransfoXLCorpus.from_pretrained(tmp_path / 'saved')
    assert again.train == corpus.train
    assert [line.tolist() for line in again.valid] == [[0, 3, 2, 0], [0, 1, 0]]
    assert len(list(again.get_iterator('train', 1, 3))) == 3
    assert next(iter(again.get_iterator('valid', 1, 3)))[1].asnumpy().tolist() == [[3, 2, 0]]


@pytest.mark.parametrize('name', ['corpus_zip.bin', 'corpus_legacy.bin'])
def test_the_originals_corpora(expected, fixtures, tmp_path, name):
    shutil.copy(fixtures / 'lm_pickles' / name, tmp_path / 'corpus.bin')
    shutil.copy(fixtures / 'lm_pickles' / 'vocab_zip.bin', tmp_path / 'vocab.bin')
    corpus = TransfoXLCorpus.from_pretrained(tmp_path)
    assert corpus.train.dtype == np.int32
    assert corpus.train.tolist() == expected['pickles']['ordered']
    assert corpus.dataset == 'wt2' and corpus.test is None
    with refuses(says='build_corpus'):
        corpus.get_iterator('test', 1, 2)


@pytest.mark.parametrize('protocol', [0, 2, 4])
def test_a_corpus_and_its_vocabulary_in_one_pickle(expected, fixtures, tmp_path, protocol):
    shutil.copy(fixtures / 'lm_pickles' / f'cache_{protocol}.pkl', tmp_path / 'cache.pkl')
    corpus = TransfoXLCorpus.from_pretrained(tmp_path)
    assert corpus.dataset == 'lm1b' and corpus.train == ['news.en-1']
    assert corpus.vocab.idx2sym == expected['pickles']['idx2sym']
    assert [line.tolist() for line in corpus.valid] == expected['pickles']['lines']


@pytest.mark.parametrize('lower_case', [False, True])
def test_as_a_tokenizer_json(lower_case, tmp_path):
    """White space is Python's, and special tokens are words only where they stand alone."""
    tokenizer = TransfoXLTokenizer(special=['<eos>', '<unk>'], lower_case=lower_case)
    tokenizer.count_sents([['the', 'cat', 'the', 'dog', '@-@', 'caf\u00e9', '\u4e2d']])
    tokenizer.build_vocab()
    tokenizer.to_library().save(str(tmp_path / 'tokenizer.json'))
    opened = FileTokenizer(tmp_path / 'tokenizer.json')
    spaces = ''.join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
    texts = ['', '  ', ' the cat ', 'THE Cat', 'the<eos> <eos> dog', 'the-cat', 'a bird @-@ dog\n']
    texts += ['caf\u00e9 \u4e2d \u4e2d\u4e2d', 'the\u200bcat']
    texts += [f'the{space}cat' for space in spaces]
    for text in texts:
        assert opened.encode(text) == tokenizer.encode(text), text
        assert opened.encode(text).offsets == tokenizer.encode(text).offsets, text
    ids = tokenizer.encode('the cat <eos>')
    assert opened.decode(ids) == tokenizer.decode(ids)
    with refuses(says='tokenizer.json'):
        TransfoXLTokenizer(special=['<unk>'], delimiter='').to_library()


@pytest.mark.parametrize(('delimiter', 'text'), [('-', 'dog-a-dog'), (None, ' dog  a dog')])
def test_places_of_words(tmp_path, delimiter, text):
    (tmp_path / 'words.txt').write_text(f'{text}\n')
    encoded = counted(tmp_path / 'words.txt', delimiter=delimiter).encode(text)
    assert [text[start:end] for start, end in encoded.offsets] == ['dog', 'a', 'dog']
