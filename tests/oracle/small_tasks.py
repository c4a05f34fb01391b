"""Train a tagger, a reader or a sentence encoder on few rows.

    python small_tasks.py TASK ROWS SEED MODEL_DIR [EPOCHS BATCH_SIZE]

prints the scores on the test rows as JSON. TASK is token-classification (sentences of CoNLL-2003),
question-answering (SQuAD; the context is the sentence with the answer) or sentence-similarity
(STS-B, 150 pairs), drawn from the files in ``ZOO_TEST_DATA``.
"""

import json
import re
import sys

from small_data import DATA, draw, read_set

import model_zoo
from model_zoo.tasks.tagging import read_conll


def questions(part):
    """Yield questions whose answer is in one sentence."""
    articles = json.loads((DATA / f'squad/{part}-v1.1-part.json').read_text('utf-8'))['data']
    for paragraph in (each for article in articles for each in article['paragraphs']):
        context = paragraph['context']
        for question, answer in ((row['question'], row['answers'][0]) for row in paragraph['qas']):
            for sentence in re.split(r'(?<=[.!?]) ', context):
                start = answer['answer_start'] - context.find(sentence)
                room = len(sentence) - len(answer['text'])
                if len(sentence) > 20 and 0 <= start <= room:
                    yield question, sentence, answer['text'], start
                    break


def read(task, count):
    """Return the rows to train on, and others."""
    if task == 'token-classification':
        parts = (read_conll(DATA / f'conll2003/{part}.txt') for part in ('train', 'valid'))
        train, test = ([sentence[:2] for sentence in part] for part in parts)
        return draw(train, count), draw(test, 300)
    if task == 'question-answering':
        return draw(list(questions('train')), count), list(questions('dev'))
    return [[(*row[:2], float(row[2])) for row in part] for part in read_set('stsb')]


def main():
    task, count, seed, folder, *updates = sys.argv[1:]
    train, test = read(task, int(count))
    options = dict(zip(('epochs', 'batch_size'), map(int, updates)), seed=int(seed))
    print(json.dumps(model_zoo.finetune(folder, task, train, test=test, **options).test_scores))


if __name__ == '__main__':
    main()
