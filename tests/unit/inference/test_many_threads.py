"""Eight threads share a pipeline, an embedding or a tokenizer; each gets what it gets alone."""

import numpy as np
import pytest
from arrays import assert_close
from eight_threads import together
from tiny_models import WORDS

import bert
import model_zoo
from model_zoo.tokenization.learn import learn_byte_pairs

CALLS = 5


def check(results):
    """Compare ``results(number)`` of eight threads with those of one."""
    for number, found in enumerate(together(results)):
        assert_close(found, results(number))


def texts_of(number, most=9):
    """Texts of unequal length, other ones for each thread."""
    random = np.random.RandomState(number)
    words = [word for word in WORDS if word.isalpha()]
    return [' '.join(random.choice(words, random.randint(1, most))) for _ in range(CALLS)]


def pairs_of(number):
    return list(zip(texts_of(number), texts_of(number + 100)))


def questions_of(number):
    return [{'question': one, 'context': other} for one, other in pairs_of(number)]


def choices_of(number):
    return [{'text': one, 'choices': [*other.split(), 'a']} for one, other in pairs_of(number)]


TASKS = {
    'text-classification': (bert.BertForSequenceClassification, ['bad', 'good'], texts_of),
    'question-answering': (bert.BertForQuestionAnswering, None, questions_of),
    'multiple-choice': (bert.BertForMultipleChoice, None, choices_of),
}


@pytest.mark.parametrize('task', TASKS)
def test_pipelines(saved, task):
    block_class, labels, items_of = TASKS[task]
    pipe = model_zoo.pipeline(task, saved(block_class, labels))  # new: the first calls are at once

    def results(number):
        items = items_of(number)
        return [pipe(item) for item in items] + list(pipe(items))

    check(results)


def test_texts_that_are_written(writer_folder):
    pipe = model_zoo.pipeline(writer_folder)

    def results(number):
        prompts = texts_of(number)
        options = {'max_new_tokens': 4, 'seed': number, 'temperature': 1.0}
        return [pipe(prompts[0], **options), pipe(prompts, max_new_tokens=3)]

    check(results)


def test_tokenizers(saved, tmp_path):
    word_pieces = model_zoo.pipeline(saved(bert.BertModel)).tokenizer
    special = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']
    pairs = learn_byte_pairs(__file__, 300, tmp_path, special)
    roberta = bert.RobertaTokenizer(pairs, str(tmp_path / 'merges.txt'))

    def results(number):
        found = []
        for text in texts_of(number, 40):
            for tokenizer in (word_pieces, roberta):
                ids = tokenizer.encode(text).input_ids.tolist()
                found += [ids, tokenizer.tokenize(text), tokenizer.decode(ids)]
        return found

    check(results)
