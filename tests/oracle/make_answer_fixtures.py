"""Record what the question answering pipeline of transformers 4.57 finds, the last that has one.

    python tests/oracle/make_answer_fixtures.py

Words, questions and options are those in tests/fixtures/answers.json; the answers there are made
anew. Run it in an environment with transformers 4.57 and this project.
"""

import pathlib
import tempfile

from oracle_files import read_json, write_json  # isort: skip
import model_zoo  # noqa: F401  isort: skip  before MXNet
import tiny
import transformers


def main():
    recorded = read_json('answers.json')
    recorded['transformers'] = transformers.__version__
    with tempfile.TemporaryDirectory() as folder:
        tiny.save_reader(pathlib.Path(folder), recorded['words'], **recorded['sizes'])
        pipeline = transformers.pipeline(
            'question-answering',
            model=transformers.BertForQuestionAnswering.from_pretrained(folder),
            tokenizer=transformers.BertTokenizerFast.from_pretrained(folder),
            device='cpu',
        )
        for case in recorded['cases']:
            answers = pipeline(
                question=case['question'], context=case['context'], **case['options']
            )
            case['answers'] = answers if isinstance(answers, list) else [answers]
    write_json('answers.json', recorded, indent=0)


if __name__ == '__main__':
    main()
