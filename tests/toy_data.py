"""Small made-up data sets, one for each task, that a tiny model learns in seconds."""

import json
import random
import string

__all__ = [
    'BAD', 'COLOURS', 'GOOD', 'SPECIAL', 'WORDS', 'write_questions', 'write_reviews',
    'write_situations', 'write_stories', 'write_tagged', 'write_texts',
]  # fmt: skip

SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
#: of reviews
GOOD, BAD = ['good', 'great', 'fine', '好'], ['bad', 'poor', 'dull', '坏']
FILLERS = ['the', 'film', 'was', 'a', 'story', 'and', 'actor', '电', '影']


def write_reviews(folder):
    """vocab.txt, and train.tsv, dev.tsv, test.tsv of a task that can be learnt."""
    words = [*SPECIAL, *GOOD, *BAD, *FILLERS, '.', '0', '1']
    (folder / 'vocab.txt').write_text('\n'.join(words) + '\n', encoding='utf-8')
    rng = random.Random(5)

    def sentence(label):
        words = rng.choices(FILLERS, k=rng.randint(2, 8))
        words.insert(rng.randrange(len(words)), rng.choice(GOOD if label else BAD))
        return ' '.join(words) + ' .'

    for name, count in (('train', 480), ('dev', 60), ('test', 21)):
        lines = ['label\ttext'] if name != 'test' else ['index\ttext']
        for number in range(count):
            label = int(rng.random() < 0.6)
            first = number + 100 if name == 'test' else ('neg', 'pos')[label]
            lines.append(f'{first}\t{sentence(label)}')
        (folder / f'{name}.tsv').write_text('\n'.join(lines) + '\n', encoding='utf-8')


COLOURS = ['red', 'green', 'blue', 'black', 'white', 'grey']
OTHERS = ['the', 'is', 'and', 'of', 'a', 'very', 'old', 'one', 'house']


def _questions(rng, count, name):
    """Paragraphs with a colour, or in a third of them none, and questions after it."""
    paragraphs = []
    for number in range(count):
        words = rng.choices(OTHERS, k=rng.randint(3, 30))
        colour, answers = rng.choice(COLOURS).title(), []
        if rng.random() < 0.67:
            words.insert(rng.randrange(len(words) + 1), colour)
            answers = [{'text': colour, 'answer_start': ' '.join(words).index(colour)}]
        context = ' '.join(words) + '.'
        entry = {'id': f'{name}{number}', 'question': 'What colour is it?'}
        entry.update(answers=answers, is_impossible=not answers)
        paragraphs.append({'context': context, 'qas': [entry]})
    return {'version': 'v2.0', 'data': [{'title': name, 'paragraphs': paragraphs}]}


def _without_impossible(content):
    content = json.loads(json.dumps(content))
    for paragraph in content['data'][0]['paragraphs']:
        paragraph['qas'] = [entry for entry in paragraph['qas'] if entry['answers']]
    return content


def write_questions(folder):
    """vocab.txt, and train and dev sets of both versions of SQuAD."""
    words = [*SPECIAL, *COLOURS, *OTHERS, 'what', 'colour', 'it', '.', '?']
    (folder / 'vocab.txt').write_text('\n'.join(words) + '\n', encoding='utf-8')
    rng = random.Random(1)
    for name, count in (('train', 400), ('dev', 40)):
        content = _questions(rng, count, name)
        (folder / f'{name}-2.json').write_text(json.dumps(content))
        (folder / f'{name}-1.json').write_text(json.dumps(_without_impossible(content)))


def write_situations(folder):
    """vocab.txt, and sets of three endings as CSV; that with an x is right."""
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL, *'abcdefx', '.']) + '\n')
    rng = random.Random(3)

    def text(*words):
        words = [*words, *rng.choices('abcdef', k=rng.randint(0, 5))]
        rng.shuffle(words)
        return ' '.join(words) + ' .'

    for name, count in (('train', 150), ('val', 24), ('test', 10)):
        rows = [',video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2']
        rows[0] += ',label' if name != 'test' else ''
        for number in range(count):
            label = rng.randrange(3)
            endings = [text('x') if place == label else text() for place in range(3)]
            row = [str(number), 'v', f'{name}{number}', 's', text(), 'a', 'gold', *endings]
            rows.append(','.join([*row, str(label)] if name != 'test' else row))
        (folder / f'{name}.csv').write_text('\n'.join(rows) + '\n')


def write_tagged(folder):
    """vocab.txt, and sentences.

    Names begin with n and go on with m; of three or four pieces, in short and long sentences.
    """
    (folder / 'vocab.txt').write_text('\n'.join([*SPECIAL, *'abcdenm', '##x', '##y']) + '\n')
    rng = random.Random(3)
    for name, count in (('train', 240), ('valid', 30), ('test', 12)):
        lines = ['-DOCSTART- -X- O', '']
        for number in range(count):
            size = 70 if number == 3 else rng.randint(1, 9)
            while size > 0:
                if rng.random() < 0.3:
                    words = ['n', *'m' * rng.randint(0, 2)]
                    labels = ['B-PER', *['I-PER'] * (len(words) - 1)]
                else:
                    words, labels = [rng.choice('abcde')], ['O']
                for word, label in zip(words, labels):
                    word += 'xyx'[: rng.randint(0, 3)]
                    lines.append(f'{word} {word[0].upper()} {label}')
                size -= len(words)
            lines.append('')
        (folder / f'{name}.txt').write_text('\n'.join(lines))


STORIES = (
    'InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,'
    'RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding'
)


def write_stories(folder):
    """A small vocabulary and stories; right endings have an a, wrong ones an x."""
    symbols = [*string.ascii_lowercase, '.']
    tokens = ['<unk>', *symbols, *(f'{symbol}</w>' for symbol in symbols), 'th', 'the</w>']
    vocab = {token: number for number, token in enumerate(tokens)}
    (folder / 'vocab.json').write_text(json.dumps(vocab))
    (folder / 'merges.txt').write_text('#version: 0.2\nt h\nth e</w>\n')
    rng = random.Random(3)

    def sentence(*words):
        words = [*words, *rng.choices('bcd', k=rng.randint(1, 3))]
        rng.shuffle(words)
        return ' '.join(words) + ' .'

    for name, count in (('train', 160), ('eval', 24)):
        lines = [STORIES]
        for number in range(count):
            label = rng.randint(1, 2)
            endings = [sentence('a', 'a'), sentence('x', 'x')][:: 1 if label == 1 else -1]
            fields = [f'{name}-{number}', *(sentence() for _ in range(4)), *endings, str(label)]
            lines.append(','.join(fields))
        (folder / f'{name}.csv').write_text('\n'.join(lines) + '\n')
        unlabelled = '\n'.join(line.rpartition(',')[0] for line in lines)
        (folder / f'{name}_unlabelled.csv').write_text(unlabelled + '\n')


WORDS = ['the', 'lobster', 'sea', 'claw', 'blue', 'red', 'old', 'sees', 'eats', 'and']


def write_texts(folder):
    """Texts in which a word mostly says which one follows; and a vocabulary for GPT."""
    rng = random.Random(1)
    for name, lines in (('train', 150), ('eval', 30)):
        text = []
        for _ in range(lines):
            place, line = rng.randrange(len(WORDS)), []
            for _ in range(rng.randint(4, 12)):
                line.append(WORDS[place])
                place = (place + 1) % len(WORDS) if rng.random() < 0.9 else rng.randrange(10)
            text.append(' '.join(line))
        (folder / f'{name}.txt').write_text('\n'.join(text) + '\n')
    letters = string.ascii_lowercase
    tokens = ['<unk>', *letters, *(f'{letter}</w>' for letter in letters), 'th', 'the</w>']
    (folder / 'vocab.json').write_text(json.dumps({t: n for n, t in enumerate(tokens)}))
    (folder / 'merges.txt').write_text('#version: 0.2\nt h\nth e</w>\n')
