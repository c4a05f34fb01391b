"""Write tests/fixtures/tokenizer_cases.json: what pytorch-pretrained-bert's tokenizers give.

Needs pytorch-pretrained-bert 0.6.2 and a released vocabulary, of which a small part is kept:

    python tests/oracle/make_tokenizer_fixtures.py path/to/bert-base-uncased/vocab.txt
"""

import json
import pathlib
import sys
import tempfile

from pytorch_pretrained_bert.tokenization import BertTokenizer, load_vocab

FIXTURES = pathlib.Path(__file__).parent.parent / 'fixtures'

TEXTS = [
    '',
    ' \t\n\r ',
    'The quick brown fox jumps over the lazy dog.',
    "It's unaffable, isn't it? (Yes: 100% -- $5.50!)",
    'HELLO hello Hello hELLO',
    'Gr\u00fc\u00dfe aus K\u00f6ln, stra\u00dfe STRASSE \u1e9e',
    'caf\u00e9 cafe\u0301 CAF\u00c9 CAFE\u0301 na\u00efve co\u0308operate',
    '\u0301alone \u0301\u0302 x\u0323\u0307y',
    '\u0130stanbul \u0131s\u0131 I\u0307 I\u0130\u0131i',
    '\u1f48\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u039f\u03a3'
    ' \u03a3 \u03c3\u03a3. \u03a3\u03a3\u03b1',
    '\u041c\u043e\u0441\u043a\u0432\u0430 \u0439\u0451\u0416',
    '\u4e2d\u56fd abc\u4e2ddef \u4e2d,\u56fd\u3002 \U00020000\u3400'
    ' \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8',
    '\u4e2d\u0301 e\u4e2d\u0301e \uf900 \U0002f800',
    '\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab',
    '\u05e9\u05dc\u05d5\u05b9\u05dd \u0645\u0631\u062d\u0628\u0627 \u202eabc\u202c \u200fx',
    '\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22',
    '\U0001f600 a\U0001f600b \U0001f468\u200d\U0001f469\u200d\U0001f467'
    ' \u2764\ufe0f \U0001f1e9\U0001f1ea',
    'a\u200bb a\u200db a\ufeffb soft\u00adhyphen a\u2060b',
    'no\u00a0break \u2003em\u3000wide a\u2028b\u2029c a\u1680b x\u180ey',
    'a\x00b a\x01b a\x0bb a\x0cb a\x1cb a\x1fb a\x7fb a\x85b a\x9fb',
    'a\ufffdb \ufffd a\ue000b \uf8ff \U000f0000',
    'a\ud800b \udfff x\ud83dy',
    'a\u0378b \u0379 \ufdd0 \uffff \U0010ffff',
    '\u037e \u0387 \u1fef \u00b7 \u2014 \u2019 \u00ab\u00bb \uff01 \u3001',
    '\U0001d165\u0323\U0001d16d \u0a3c\u302e\u302f x\u302f\u302ey',
    '\u2126 \u212a \u212b \ufb01 \u01c5 \u0149 \u03d3',
    '[CLS] a [SEP] b[SEP]c [MASK]. [UNK] [PAD]',
    '[cls] [Sep] [MASK [ MASK ] [S\x00EP] \u4e2d[SEP]\u4e2d [SEP\u0301]',
    '[UNK]ing ##ing ## # [SEP][SEP]',
    'a' * 99 + ' ' + 'a' * 100 + ' ' + 'a' * 101,
    'e\u0301' * 100 + ' ' + '\u00e9' * 101 + ' ' + 'ab' * 300,
    'x' * 100 + '.' + 'x' * 101 + ' ok',
    '^`$+<=>|~ \u00a7\u00b6\u20ac\u2122',
    'http://example.com/a_b?c=d&e=f user@example.com @name #tag',
]


def main(vocab_path):
    released = load_vocab(vocab_path)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'vocab.txt')
        used = set(BertTokenizer.__init__.__defaults__[3])
        for lower in (True, False):
            tokenizer = BertTokenizer(vocab_path, do_lower_case=lower)
            for text in TEXTS:
                used.update(tokenizer.tokenize(text))
        letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
        used.update(letters)
        used.update(f'##{letter}' for letter in letters)
        vocab = [token for token in released if token in used]
        path.write_text(''.join(f'{token}\n' for token in vocab), encoding='utf-8')
        cases = []
        for lower in (True, False):
            tokenizer = BertTokenizer(str(path), do_lower_case=lower)
            spaced = BertTokenizer(str(path), do_lower_case=lower, do_basic_tokenize=False)
            for text in TEXTS:
                tokens = tokenizer.tokenize(text)
                words = tokenizer.basic_tokenizer.tokenize(text)
                case = {'text': text, 'lower': lower, 'words': words, 'tokens': tokens}
                case['ids'] = tokenizer.convert_tokens_to_ids(tokens)
                cases.append({**case, 'tokens_without_basic': spaced.tokenize(text)})
    with open(FIXTURES / 'tokenizer_cases.json', 'w', encoding='ascii') as file:
        json.dump({'vocab': vocab, 'cases': cases}, file, indent=0)
        file.write('\n')


if __name__ == '__main__':
    main(sys.argv[1])
