"""Write what the originals' tokenizers for language models give, to tests/fixtures/.

lm_tokenizer_cases.json, and lm_pickles/ with vocabularies and corpora as the originals save them.
Needs pytorch-pretrained-bert 0.6.2, transformers 4, sacremoses, and the released vocabularies of
GPT and GPT-2, of which a small part is kept:

    python tests/oracle/make_lm_tokenizer_fixtures.py path/to/openai-gpt path/to/gpt2
"""

import contextlib
import io
import itertools
import json
import pathlib
import pickle
import re
import sys
import tempfile

import numpy as np
import torch
from pytorch_pretrained_bert import tokenization_gpt2, tokenization_openai
from pytorch_pretrained_bert.tokenization_transfo_xl import (
    LMOrderedIterator,
    LMShuffledIterator,
    TransfoXLCorpus,
    TransfoXLTokenizer,
)

FIXTURES = pathlib.Path(__file__).parent.parent / 'fixtures'
MERGES = 600  # of each release

TEXTS = [
    '',
    ' \t\n\r ',
    'a',
    'The quick brown fox jumps over the lazy dog.',
    "It's what they've said, isn't it? I'll, he'd, I'm; THEY'RE 'S (100% -- $5.50!)",
    '  two  spaces\tand a tab \n\n  new lines \r\n end ',
    'caf\u00e9 cafe\u0301 na\u00efve \u00fcber stra\u00dfe \u0130stanbul \u03a3\u03a3',
    '\u4e2d\u56fd abc\u4e2d\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \U00020000',
    '\u05e9\u05dc\u05d5\u05b9\u05dd \u0645\u0631\u062d\u0628\u0627 \u202eabc\u202c \u0939\u093f',
    '\U0001f600 a\U0001f600b \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f',
    'a\x00b \x00 a\x01b a\x0bb\x0cc\x1cd\x1fe\x7f\x85f\x9f\xa0g \u2028h\u3000i\ufeff',
    'a\ud800b \udfff x\ud83dy \ufffd \ue000 \uffff \U0010ffff',
    'x' * 300 + ' ' + 'the' * 100 + ' ' + '\u00e9' * 90,
    '\u2014 \u2013 \u2026 \u00b4 --- ~~ ((( ]] __init__ /* \\n */ | {} +++ "" ,,,',
    '<unk> </w> <|endoftext|> _start_ x _classify_. _START_ \u0120 \u010a',
    'no. 1,234.56 \u00bd \u0661\u0662 x\u00b2 \u2167 12th 3D',
    "do not stop . he said \" ' yes ' \" , did n't he ?",
]
SPECIAL = ['_start_', '_delimiter_', '_classify_']

LINES = [
    'the cat sat on the mat .',
    '',
    ' = the Title = ',
    'The end of the <unk> , the <eos> end',
    'caf\u00e9 \u4e2d\u56fd \u00a0 the\tcat\rcarriage return',
    'dog cat bird cat',
]
OPTIONS = [
    {},
    {'special': ['<eos>']},
    {'special': ['<unk>', '<eos>'], 'lower_case': True, 'min_freq': 2},
    {'special': ['<eos>', '<unk>'], 'max_size': 5},
    {'special': ['<unk>', '<eos>'], 'delimiter': ' '},
    {'special': ['<unk>', '<eos>', '<S>'], 'max_size': 0},
]


def byte_level_tokenize(self, text):
    """The release's `encode`: pytorch-pretrained-bert takes characters for bytes here."""
    tokens = []
    for word in tokenization_gpt2.re.findall(self.pat, text):
        symbols = ''.join(self.byte_encoder[byte] for byte in word.encode('utf-8'))
        tokens.extend(self.bpe(symbols).split(' '))
    return tokens


tokenization_gpt2.GPT2Tokenizer.tokenize = byte_level_tokenize


def part_of(vocab_path, merges_path):
    """The first merges of a release, and the vocabulary that belongs to them."""
    encoder = json.loads(vocab_path.read_text(encoding='utf-8'))
    lines = merges_path.read_text(encoding='utf-8').split('\n')[1:-1]
    results = {line.replace(' ', '') for line in lines}
    merges = lines[:MERGES]
    kept = {line.replace(' ', '') for line in merges}
    tokens = [t for t in sorted(encoder, key=encoder.get) if t not in results or t in kept]
    return {token: place for place, token in enumerate(tokens)}, merges


def write_part(folder, vocab, merges):
    """Paths of both files, as the original wants them."""
    paths = pathlib.Path(folder, 'vocab.json'), pathlib.Path(folder, 'merges.txt')
    paths[0].write_text(json.dumps(vocab), encoding='ascii')
    paths[1].write_text('#version: 0.2\n' + ''.join(f'{m}\n' for m in merges), encoding='utf-8')
    return [str(path) for path in paths]


def bpe_cases(tokenizer, special, decode_options):
    tokenizer.set_special_tokens(special)
    cases = []
    for text in TEXTS:
        # what the originals can't encode is replaced before they see it
        tokens = tokenizer.tokenize(re.sub('[\ud800-\udfff]', '\ufffd', text))
        ids = tokenizer.convert_tokens_to_ids(tokens)
        decoded = [tokenizer.decode(ids, **options) for options in decode_options]
        cases.append({'text': text, 'tokens': tokens, 'ids': ids, 'decoded': decoded})
    return cases


def make_words(path, options, add_eos=False):
    tokenizer = TransfoXLTokenizer(**options)
    tokenizer.count_file(path, add_eos=add_eos)
    with contextlib.redirect_stdout(io.StringIO()):
        tokenizer.build_vocab()
    return tokenizer


def encoded_or_error(tokenizer, path, **kwargs):
    try:
        return tokenizer.encode_file(path, ordered=True, **kwargs).tolist()
    except ValueError:
        return None


def word_cases(path):
    cases = []
    for options, count_eos in itertools.product(OPTIONS, (False, True)):
        tokenizer = make_words(path, options, count_eos)
        encoded = [
            encoded_or_error(tokenizer, path, add_eos=eos, add_double_eos=double)
            for eos, double in ((False, False), (True, False), (True, True))
        ]
        case = {'options': options, 'count_eos': count_eos, 'idx2sym': tokenizer.idx2sym}
        decoded = tokenizer.decode(range(len(tokenizer)), exclude=[1])
        cases.append({**case, 'encoded': encoded, 'decoded': decoded})
    return cases


def batches_of(iterator):
    return [[data.tolist(), target.tolist(), length] for data, target, length in iterator]


def batch_cases():
    cases = []
    for tokens, bsz, bptt, ext_len in ((23, 3, 2, 0), (23, 2, 4, 3), (8, 4, 5, 1), (300, 2, 9, 0)):
        ordered = LMOrderedIterator(torch.arange(tokens), bsz, bptt, ext_len=ext_len)
        case = {'kind': 'ordered', 'arguments': [bsz, bptt, ext_len], 'tokens': tokens}
        np.random.seed(1)
        varlen = batches_of(ordered.get_varlen_iter())
        cases.append({**case, 'batches': batches_of(ordered), 'varlen': varlen})
    lengths = [5, 1, 7, 2, 12, 3, 3, 9, 4, 6]
    starts = np.cumsum([0, *lengths])
    sents = [torch.arange(start, start + n) for start, n in zip(starts.tolist(), lengths)]
    for bsz, bptt, ext_len, shuffle in ((2, 3, 0, False), (3, 4, 2, False), (2, 5, 2, True)):
        np.random.seed(1)
        batches = LMShuffledIterator(sents, bsz, bptt, ext_len=ext_len, shuffle=shuffle)
        case = {'kind': 'shuffled', 'arguments': [bsz, bptt, ext_len, shuffle]}
        cases.append({**case, 'lengths': lengths, 'batches': batches_of(batches)})
    return cases


def write_pickles(path, folder):
    """Vocabularies and corpora in the forms in which the originals save them."""
    folder.mkdir(exist_ok=True)
    tokenizer = make_words(path, {'special': ['<eos>', '<unk>']})
    ordered, lines = tokenizer.encode_file(path, ordered=True), tokenizer.encode_file(path)
    corpus = {'dataset': 'wt2', 'train': ordered, 'valid': ordered[:7], 'test': None}
    for name, as_zip in (('zip', True), ('legacy', False)):
        options = {'_use_new_zipfile_serialization': as_zip}
        torch.save(tokenizer.__dict__, folder / f'vocab_{name}.bin', **options)
        torch.save(corpus, folder / f'corpus_{name}.bin', **options)
    whole = TransfoXLCorpus()
    whole.vocab, whole.dataset = tokenizer, 'lm1b'
    whole.train, whole.valid = ['news.en-1'], [line.numpy() for line in lines]
    for protocol in (0, 2, 4):
        (folder / f'cache_{protocol}.pkl').write_bytes(pickle.dumps(whole, protocol))
    from transformers.models.deprecated.transfo_xl import tokenization_transfo_xl as hf

    other = hf.TransfoXLTokenizer(special=['<eos>', '<unk>'])
    other.count_sents([line.split() for line in LINES])
    other.build_vocab()
    with tempfile.TemporaryDirectory() as saved:
        (saved_path,) = other.save_vocabulary(saved)
        (folder / 'vocab.pkl').write_bytes(pathlib.Path(saved_path).read_bytes())
    return {
        'idx2sym': tokenizer.idx2sym,
        'counter': dict(tokenizer.counter),
        'ordered': ordered.tolist(),
        'lines': [line.tolist() for line in lines],
        'transformers_idx2sym': other.idx2sym,
    }


def main(gpt_dir, gpt2_dir):
    result = {}
    gpt = part_of(gpt_dir / 'encoder_bpe_40000.json', gpt_dir / 'vocab_40000.bpe')
    gpt2 = part_of(gpt2_dir / 'encoder.json', gpt2_dir / 'vocab.bpe')
    of_gpt = [{}, {'clean_up_tokenization_spaces': False}]
    with tempfile.TemporaryDirectory() as folder:
        for name, part, make, options in (
            ('gpt', gpt, tokenization_openai.OpenAIGPTTokenizer, of_gpt),
            ('gpt2', gpt2, tokenization_gpt2.GPT2Tokenizer, [{}]),
        ):
            tokenizer = make(*write_part(folder, *part))
            result[name] = {
                'vocab': list(part[0]),
                'merges': part[1],
                'cases': bpe_cases(tokenizer, None, options),
                'special': SPECIAL,
                'special_cases': bpe_cases(tokenizer, SPECIAL, options),
                'special_ids': tokenizer.convert_tokens_to_ids([*SPECIAL, 'the', 'a']),
            }
        path = pathlib.Path(folder, 'text.txt')
        path.write_text('\n'.join(LINES) + '\n', encoding='utf-8', newline='')
        words = {'lines': LINES, 'cases': word_cases(str(path)), 'batches': batch_cases()}
        result['words'] = words
        result['pickles'] = write_pickles(str(path), FIXTURES / 'lm_pickles')
    with open(FIXTURES / 'lm_tokenizer_cases.json', 'w', encoding='ascii') as file:
        json.dump(result, file, indent=None, separators=(',', ':'))
        file.write('\n')


if __name__ == '__main__':
    main(*map(pathlib.Path, sys.argv[1:]))
