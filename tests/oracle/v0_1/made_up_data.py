"""Small made-up data for each command of version 0.1."""

import json
import random
import string

SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
WORDS = ['the', 'lobster', 'sea', 'claw', 'blue', 'red', 'old', 'sees', 'eats', 'and', 'is', 'what',
         'good', 'bad', 'fine', 'poor', 'colour', 'house']  # fmt: skip
LETTERS = string.ascii_lowercase
#: pieces that a word may go on with
PIECES = [f'##{letter}' for letter in 'aeiounrst']


def write_data(folder):
    """Write all data sets into `folder`."""
    folder.mkdir(parents=True)
    rng = random.Random(11)
    tokens = [*SPECIAL, *WORDS, *LETTERS, *PIECES, '.', '?', ',', '0', '1']
    _write(folder / 'vocab.txt', tokens)
    _gpt_vocab(folder / 'gpt')
    _sentences(folder, rng)
    _choices(folder / 'swag', rng)
    _tags(folder / 'tagging', rng)
    _stories(folder, rng)
    _questions(folder, rng)
    _texts(folder, rng)


def _write(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')


def _gpt_vocab(folder):
    symbols = [*LETTERS, '.', ',', '?']
    merges = ['t h', 'th e</w>', 's e', 'se a</w>', 'o l', 'ol d</w>']
    tokens = ['<unk>', *symbols, *(f'{symbol}</w>' for symbol in symbols)]
    tokens += [merge.replace(' ', '') for merge in merges]
    _write(folder / 'vocab.json', [json.dumps({token: n for n, token in enumerate(tokens)})])
    _write(folder / 'merges.txt', ['#version: 0.2', *merges])


def _text(rng, least=3, most=9):
    return ' '.join(rng.choices(WORDS, k=rng.randint(least, most)))


def _sentences(folder, rng):
    for name, count in (('train', 44), ('dev', 14), ('test', 6)):
        rows = ['label\ttext' if name != 'test' else 'index\ttext']
        for number in range(count):
            label = rng.randrange(2)
            word = rng.choice(['good', 'fine'] if label else ['bad', 'poor'])
            first = number if name == 'test' else label
            rows.append(f'{first}\t{_text(rng)} {word} .')
        _write(folder / 'sentences' / f'{name}.tsv', rows)
    glue = [row.split('\t')[::-1] for row in rows_of(folder / 'sentences' / 'dev.tsv')]
    lines = ['sentence\tlabel', *(f'{text}\t{label}' for text, label in glue[1:])]
    _write(folder / 'glue' / 'dev.tsv', lines)


def rows_of(path):
    return path.read_text(encoding='utf-8').splitlines()


def _choices(folder, rng):
    head = ',video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2'
    for name, count in (('train', 20), ('val', 6), ('test', 3)):
        rows = [head + (',label' if name != 'test' else '')]
        for number in range(count):
            label = rng.randrange(3)
            endings = [_text(rng) + (' good' if n == label else ' bad') for n in range(3)]
            row = [str(number), 'v', f'{name}{number}', 's', _text(rng), 'a', 'gold', *endings]
            rows.append(','.join([*row, *([] if name == 'test' else [str(label)])]))
        _write(folder / f'{name}.csv', rows)


def _tags(folder, rng):
    for name, count in (('train', 24), ('valid', 8), ('test', 5)):
        lines = ['-DOCSTART- -X- O', '']
        for _ in range(count):
            for _ in range(rng.randint(2, 9)):
                if rng.random() < 0.3:
                    lines += ['seas N B-PER', *['seat N I-PER'] * rng.randint(0, 2)]
                else:
                    lines.append(f'{rng.choice(WORDS)} W O')
            lines.append('')
        _write(folder / f'{name}.txt', lines)


def _stories(folder, rng):
    head = 'InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,'
    head += 'RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding'
    for name, count in (('train', 12), ('eval', 5)):
        rows = [head]
        for number in range(count):
            label = rng.randint(1, 2)
            endings = ['the sea', 'old old'][:: 1 if label == 1 else -1]
            sentences = [_text(rng, 1, 2) for _ in range(4)]
            rows.append(','.join([f'{name}-{number}', *sentences, *endings, str(label)]))
        _write(folder / 'stories' / f'{name}.csv', rows)


def _questions(folder, rng):
    for name, count in (('train', 24), ('dev', 7)):
        paragraphs = []
        for number in range(count):
            words, answers = _text(rng, 4, 22).split(), []
            if rng.random() < 0.7:
                words.insert(rng.randrange(len(words) + 1), 'Blue')
                answers = [{'text': 'Blue', 'answer_start': ' '.join(words).index('Blue')}]
            entry = {'id': f'{name}{number}', 'question': 'what colour is the sea?'}
            entry.update(answers=answers, is_impossible=not answers)
            paragraphs.append({'context': ' '.join(words) + '.', 'qas': [entry]})
        content = {'version': 'v2.0', 'data': [{'title': name, 'paragraphs': paragraphs}]}
        _write(folder / 'squad' / f'{name}.json', [json.dumps(content)])


def _texts(folder, rng):
    """Texts in which a word says which one follows, most of the time."""
    for name, count in (('train', 60), ('eval', 12)):
        lines = []
        for _ in range(count):
            place, line = rng.randrange(len(WORDS)), []
            for _ in range(rng.randint(4, 10)):
                line.append(WORDS[place])
                follows = rng.random() < 0.9
                place = (place + 1) % len(WORDS) if follows else rng.randrange(len(WORDS))
            lines.append(' '.join(line))
        _write(folder / 'text' / f'{name}.txt', lines)
    documents = []
    for _ in range(14):
        documents += [*(_text(rng, 3, 8) + ' .' for _ in range(rng.randint(3, 6))), '']
    _write(folder / 'text' / 'documents.txt', documents)
    _write(folder / 'text' / 'lines.txt', ['the old sea ?', 'blue claw ||| red claw', 'seas, 1'])
