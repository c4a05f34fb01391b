"""Write what the originals' tokenizers for language models give, to tests/fixtures/.

    python tests/oracle/make_lm_tokenizer_fixtures.py

lm_tokenizer_cases.json, whose texts, options and parts of the released vocabularies stay, and
lm_pickles/ with vocabularies and corpora as the originals save them. Needs pytorch-pretrained-bert
0.6.2, transformers 4 and sacremoses.
"""

import contextlib
import io
import json
import pathlib
import pickle
import re
import tempfile

import numpy as np
import torch
from oracle_files import FIXTURES, read_json, write_json
from pytorch_pretrained_bert import tokenization_gpt2, tokenization_openai
from pytorch_pretrained_bert.tokenization_transfo_xl import (
    LMOrderedIterator,
    LMShuffledIterator,
    TransfoXLCorpus,
    TransfoXLTokenizer,
)

#: family -> its tokenizer, and options of `decode`
FAMILIES = {
    'gpt': (
        tokenization_openai.OpenAIGPTTokenizer,
        [{}, {'clean_up_tokenization_spaces': False}],
    ),
    'gpt2': (tokenization_gpt2.GPT2Tokenizer, [{}]),
}


def byte_level_tokenize(self, text):
    """The release's `encode`: pytorch-pretrained-bert takes characters for bytes here."""
    tokens = []
    for word in tokenization_gpt2.re.findall(self.pat, text):
        symbols = ''.join(self.byte_encoder[byte] for byte in word.encode('utf-8'))
        tokens.extend(self.bpe(symbols).split(' '))
    return tokens


tokenization_gpt2.GPT2Tokenizer.tokenize = byte_level_tokenize


def open_bpe(family, part):
    """The original's tokenizer of a vocabulary and merges."""
    with tempfile.TemporaryDirectory() as folder:
        vocab, merges = pathlib.Path(folder, 'vocab.json'), pathlib.Path(folder, 'merges.txt')
        ids = {token: number for number, token in enumerate(part['vocab'])}
        vocab.write_text(json.dumps(ids), encoding='ascii')
        lines = ['#version: 0.2', *part['merges'], '']
        merges.write_text('\n'.join(lines), encoding='utf-8')
        return FAMILIES[family][0](str(vocab), str(merges))


def record_bpe(tokenizer, special, cases, decode_options):
    tokenizer.set_special_tokens(special)
    for case in cases:
        # what the originals can't encode is replaced before they see it
        tokens = tokenizer.tokenize(re.sub('[\ud800-\udfff]', '\ufffd', case['text']))
        case['tokens'], case['ids'] = tokens, tokenizer.convert_tokens_to_ids(tokens)
        case['decoded'] = [tokenizer.decode(case['ids'], **options) for options in decode_options]


def make_words(path, options, add_eos=False):
    tokenizer = TransfoXLTokenizer(**options)
    tokenizer.count_file(path, add_eos=add_eos)
    with contextlib.redirect_stdout(io.StringIO()):
        tokenizer.build_vocab()
    return tokenizer


def encoded_or_error(tokenizer, path, **options):
    try:
        return tokenizer.encode_file(path, ordered=True, **options).tolist()
    except ValueError:
        return None


def record_words(path, cases):
    for case in cases:
        tokenizer = make_words(path, case['options'], case['count_eos'])
        case['idx2sym'] = tokenizer.idx2sym
        case['encoded'] = [
            encoded_or_error(tokenizer, path, add_eos=eos, add_double_eos=double)
            for eos, double in ((False, False), (True, False), (True, True))
        ]
        case['decoded'] = tokenizer.decode(range(len(tokenizer)), exclude=[1])


def batches_of(iterator):
    return [[data.tolist(), target.tolist(), length] for data, target, length in iterator]


def record_batches(cases):
    for case in cases:
        size, length, ext_len, *shuffle = case['arguments']
        np.random.seed(1)
        if case['kind'] == 'ordered':
            tokens = torch.arange(case['tokens'])
            ordered = LMOrderedIterator(tokens, size, length, ext_len=ext_len)
            case['varlen'] = batches_of(ordered.get_varlen_iter())
            case['batches'] = batches_of(ordered)
        else:
            ends = np.cumsum(case['lengths']).tolist()
            lines = [torch.arange(end - n, end) for end, n in zip(ends, case['lengths'])]
            shuffled = LMShuffledIterator(lines, size, length, ext_len=ext_len, shuffle=shuffle[0])
            case['batches'] = batches_of(shuffled)


def write_pickles(path, lines, folder):
    """Vocabularies and corpora in the forms in which the originals save them."""
    tokenizer = make_words(path, {'special': ['<eos>', '<unk>']})
    ordered, encoded = tokenizer.encode_file(path, ordered=True), tokenizer.encode_file(path)
    corpus = {'dataset': 'wt2', 'train': ordered, 'valid': ordered[:7], 'test': None}
    for name, as_zip in (('zip', True), ('legacy', False)):
        options = {'_use_new_zipfile_serialization': as_zip}
        torch.save(tokenizer.__dict__, folder / f'vocab_{name}.bin', **options)
        torch.save(corpus, folder / f'corpus_{name}.bin', **options)
    whole = TransfoXLCorpus()
    whole.vocab, whole.dataset = tokenizer, 'lm1b'
    whole.train, whole.valid = ['news.en-1'], [line.numpy() for line in encoded]
    for protocol in (0, 2, 4):
        (folder / f'cache_{protocol}.pkl').write_bytes(pickle.dumps(whole, protocol))
    from transformers.models.deprecated.transfo_xl import tokenization_transfo_xl as hf

    other = hf.TransfoXLTokenizer(special=['<eos>', '<unk>'])
    other.count_sents([line.split() for line in lines])
    other.build_vocab()
    with tempfile.TemporaryDirectory() as saved:
        (saved_path,) = other.save_vocabulary(saved)
        (folder / 'vocab.pkl').write_bytes(pathlib.Path(saved_path).read_bytes())
    return {
        'idx2sym': tokenizer.idx2sym,
        'counter': dict(tokenizer.counter),
        'ordered': ordered.tolist(),
        'lines': [line.tolist() for line in encoded],
        'transformers_idx2sym': other.idx2sym,
    }


def main():
    recorded = read_json('lm_tokenizer_cases.json')
    for family, (_, options) in FAMILIES.items():
        part = recorded[family]
        tokenizer, special = open_bpe(family, part), part['special']
        record_bpe(tokenizer, None, part['cases'], options)
        record_bpe(tokenizer, special, part['special_cases'], options)
        part['special_ids'] = tokenizer.convert_tokens_to_ids([*special, 'the', 'a'])
    words = recorded['words']
    record_batches(words['batches'])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'text.txt')
        path.write_text('\n'.join(words['lines']) + '\n', encoding='utf-8', newline='')
        record_words(str(path), words['cases'])
        recorded['pickles'] = write_pickles(str(path), words['lines'], FIXTURES / 'lm_pickles')
    write_json('lm_tokenizer_cases.json', recorded)


if __name__ == '__main__':
    main()
