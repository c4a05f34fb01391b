"""Write tests/fixtures/tokenizer_cases.json: what pytorch-pretrained-bert's tokenizers give.

    python tests/oracle/make_tokenizer_fixtures.py

Texts and vocabulary, a small part of the released one, are those in the file. Needs
pytorch-pretrained-bert 0.6.2.
"""

import pathlib
import tempfile

from oracle_files import read_json, write_json
from pytorch_pretrained_bert.tokenization import BertTokenizer


def main():
    recorded = read_json('tokenizer_cases.json')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'vocab.txt')
        path.write_text(''.join(f'{token}\n' for token in recorded['vocab']), encoding='utf-8')
        for case in recorded['cases']:
            options = {'do_lower_case': case['lower']}
            tokenizer = BertTokenizer(str(path), **options)
            spaced = BertTokenizer(str(path), do_basic_tokenize=False, **options)
            case['words'] = tokenizer.basic_tokenizer.tokenize(case['text'])
            case['tokens'] = tokenizer.tokenize(case['text'])
            case['ids'] = tokenizer.convert_tokens_to_ids(case['tokens'])
            case['tokens_without_basic'] = spaced.tokenize(case['text'])
    write_json('tokenizer_cases.json', recorded, indent=0, separators=None)


if __name__ == '__main__':
    main()
