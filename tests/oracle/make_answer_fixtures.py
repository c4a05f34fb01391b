"""Records what the question answering pipeline of transformers 4.57 finds, the last that has one.

    python tests/oracle/make_answer_fixtures.py

Run it in an environment with transformers 4.57 and this project.
"""

import json
import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

import model_zoo  # noqa: E402, F401, I001  before MXNet
import tiny  # noqa: E402
import transformers  # noqa: E402

WORDS = [*'abcdefghijklm.?,', *(f'##{letter}' for letter in 'abcdefgh'), 'the', 'cat', 'who', 'is']
TEXT = 'the cat is abc. who is a bad cat? the cat, is. feed the cab a, b. dig the deaf cat'
QUESTIONS = [
    {'question': 'who is the cat?', 'context': TEXT},
    {'question': 'is a bad cat the deaf cat a b c', 'context': f'{TEXT} {TEXT}'},
    {'question': 'who?', 'context': 'a cat'},
]
#: max_question_len is left out: that pipeline looks at it with a tokenizer in Python alone
OPTIONS = [
    {},
    {'top_k': 4},
    {'max_answer_len': 2, 'top_k': 3},
    {'max_answer_len': 40},
    {'handle_impossible_answer': True, 'top_k': 3},
    {'handle_impossible_answer': True},
    {'align_to_words': False, 'top_k': 3},
    {'max_seq_len': 30, 'doc_stride': 5, 'top_k': 3},
    # a word that a window cuts is whole here, and isn't there
    {'max_seq_len': 30, 'doc_stride': 0, 'top_k': 2, 'align_to_words': False},
    {'max_seq_len': 30, 'doc_stride': 5, 'handle_impossible_answer': True, 'top_k': 2},
]


def main():
    sizes = {'max_position_embeddings': 384}
    recorded = {'transformers': transformers.__version__, 'words': WORDS, 'sizes': sizes}
    cases = recorded['cases'] = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tiny.save_reader(folder, WORDS, **sizes)
        model = transformers.BertForQuestionAnswering.from_pretrained(name)
        tokenizer = transformers.BertTokenizerFast.from_pretrained(name)
        pipeline = transformers.pipeline(
            'question-answering', model=model, tokenizer=tokenizer, device='cpu'
        )
        for options in OPTIONS:
            for question in QUESTIONS:
                answers = pipeline(**question, **options)
                answers = answers if isinstance(answers, list) else [answers]
                cases.append({**question, 'options': options, 'answers': answers})
    path = TESTS / 'fixtures' / 'answers.json'
    path.write_text(json.dumps(recorded, indent=0) + '\n', 'ascii')


if __name__ == '__main__':
    main()
