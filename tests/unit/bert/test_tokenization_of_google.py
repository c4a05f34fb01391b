"""The names of Google's tokenization.py."""

import pytest

from bert import tokenization


def test_the_readmes_map_of_tokens(tmp_path):
    words = ['john', 'johan', '##son', "'", 's', 'house', '[', ']', 'cl', '##s']
    vocab_file = tmp_path / 'vocab.txt'
    vocab_file.write_text('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *words]) + '\n')
    orig_tokens = ['John', 'Johanson', "'s", 'house']
    bert_tokens, orig_to_tok_map = [], []
    tokenizer = tokenization.FullTokenizer(vocab_file=vocab_file, do_lower_case=True)
    bert_tokens.append('[CLS]')
    for orig_token in orig_tokens:
        orig_to_tok_map.append(len(bert_tokens))
        bert_tokens.extend(tokenizer.tokenize(orig_token))
    bert_tokens.append('[SEP]')
    assert bert_tokens == ['[CLS]', 'john', 'johan', '##son', "'", 's', 'house', '[SEP]']
    assert orig_to_tok_map == [1, 2, 4, 6]
    ids = tokenizer.convert_tokens_to_ids(bert_tokens)
    assert [tokenizer.inv_vocab[each] for each in ids] == bert_tokens
    assert tokenizer.convert_ids_to_tokens(ids) == bert_tokens
    # special tokens are words like others there
    assert tokenizer.tokenize('[CLS]') == ['[', 'cl', '##s', ']']
    assert tokenizer.tokenize('s' * 201) == ['[UNK]'] != tokenizer.tokenize('s' + 's' * 199)


def test_functions(tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_text('[UNK]\nla\n##la\n')
    vocab = tokenization.load_vocab(path)
    assert list(vocab.items()) == [('[UNK]', 0), ('la', 1), ('##la', 2)]
    assert tokenization.convert_by_vocab(vocab, ['##la', 'la']) == [2, 1]
    assert tokenization.convert_tokens_to_ids(vocab, ['la']) == [1]
    assert tokenization.convert_ids_to_tokens({1: 'la'}, [1]) == ['la']
    assert tokenization.whitespace_tokenize(' a  b\n') == ['a', 'b']
    for function in (tokenization.convert_to_unicode, tokenization.printable_text):
        assert function('\u00e9') == function(b'\xc3\xa9\xff') == '\u00e9'
        with pytest.raises(ValueError):
            function(3)
