"""XLM-R's tokenizer and names; the model is RoBERTa's."""

import pytest
from variant_models import MAKERS

import bert
from bert.sentence_pieces import open_model


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('xlmr')
    MAKERS['xlmr'](folder)
    return folder


def test_tokenizer(folder):
    tokenizer = bert.XLMRobertaTokenizer.from_pretrained(str(folder))
    encoding = tokenizer.encode('the cat <mask>', 'red')
    assert encoding[0] == 0 and encoding[-1] == 2 and encoding.count(2) == 3
    assert encoding.tokens[encoding.index(tokenizer.mask_token_id)] == '<mask>'
    assert tokenizer.mask_token_id == len(tokenizer) - 1 and tokenizer.pad_token_id == 1
    assert not any(encoding.token_types)
    words = [encoding.words[n] for n in sorted({*encoding.word_ids} - {None})]
    assert words == ['the', 'cat', '<mask>', 'red']
    text = 'the cat'
    spans = tokenizer.encode(text).offsets
    assert ''.join(text[start:end] for start, end in spans).replace(' ', '') == 'thecat'
    assert tokenizer.decode(encoding, skip_special_tokens=True) == 'the cat red'
    unknown = tokenizer.encode('\u4e2d', add_special_tokens=False)
    assert 3 in unknown  # <unk>
    assert tokenizer.encode('') == [0, 2]
    # in quadratic time this would be minutes
    long = tokenizer.encode('the cat ' * 2**12, add_special_tokens=False)
    assert long.word_ids[-1] == len(long.words) - 1 == 2**13 - 1


def test_ids_are_fairseqs(folder):
    path = str(folder / 'sentencepiece.bpe.model')
    tokenizer, processor = bert.XLMRobertaTokenizer(path), open_model(path)
    for number in range(3, processor.GetPieceSize()):
        assert tokenizer.convert_tokens_to_ids(processor.IdToPiece(number)) == number + 1
    for place, token in enumerate(('<s>', '<pad>', '</s>', '<unk>')):
        assert tokenizer.convert_tokens_to_ids(token) == place
