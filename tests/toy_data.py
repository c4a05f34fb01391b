"""Small made-up data sets, one for each task, that a tiny model learns in seconds."""

import json
import random
import string

import numpy as np
from tiny import SPECIAL, write_pairs, write_words

from model_zoo.tasks.pretraining.files import Samples, write_shard
from model_zoo.tokenization.vocab import load_vocab

#: of reviews
GOOD, BAD = ['good', 'great', 'fine', '好'], ['bad', 'poor', 'dull', '坏']
FILLERS = ['the', 'film', 'was', 'a', 'story', 'and', 'actor', '电', '影']


def write_reviews(folder, train=480):
    """vocab.txt, and train.tsv, dev.tsv, test.tsv of a task that can be learnt."""
    write_words(folder, [*GOOD, *BAD, *FILLERS, '.', '0', '1'])
    rng = random.Random(5)

    def sentence(label):
        words = rng.choices(FILLERS, k=rng.randint(2, 8))
        words.insert(rng.randrange(len(words)), rng.choice(GOOD if label else BAD))
        return ' '.join(words) + ' .'

    for name, count in (('train', train), ('dev', 60), ('test', 21)):
        lines = ['label\ttext'] if name != 'test' else ['index\ttext']
        for number in range(count):
            label = int(rng.random() < 0.6)
            first = number + 100 if name == 'test' else ('neg', 'pos')[label]
            lines.append(f'{first}\t{sentence(label)}')
        (folder / f'{name}.tsv').write_text('\n'.join(lines) + '\n', encoding='utf-8')


def write_task(folder, task):
    """The files of one of the classifier's tasks; those of tests have no labels."""
    folder.mkdir(parents=True)
    labels = task.labels or ['1.5', '4.0']
    for segment, files in task.files.items():
        is_test = segment.startswith('test')
        layout = next(each for each in task.layouts if is_test or each.label is not None)
        if layout.header:
            columns = ['index', *layout.text, *([] if is_test else [layout.label])]
        else:
            columns = range(layout.width)
        lines = ['\t'.join(columns)] if layout.header else []
        for number in range(8):
            row = dict.fromkeys(columns, 'x')
            text = ' '.join('abcdefgh'[number % 5 :][:4]) + ' .'
            row.update(dict.fromkeys(layout.text, text))
            if layout.label in row:
                row[layout.label] = labels[number % len(labels)]
            lines.append('\t'.join(row.values()))
        (folder / files[0]).write_text('\n'.join(lines) + '\n')


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


def without_impossible(content):
    """A copy of SQuAD's content without the questions that have no answer."""
    content = json.loads(json.dumps(content))
    for paragraph in (each for article in content['data'] for each in article['paragraphs']):
        paragraph['qas'] = [entry for entry in paragraph['qas'] if entry['answers']]
    return content


def write_questions(folder, train=400):
    """vocab.txt, and train and dev sets of both versions of SQuAD."""
    write_words(folder, [*COLOURS, *OTHERS, 'what', 'colour', 'it', '.', '?'])
    rng = random.Random(1)
    for name, count in (('train', train), ('dev', 40)):
        content = _questions(rng, count, name)
        (folder / f'{name}-2.json').write_text(json.dumps(content))
        (folder / f'{name}-1.json').write_text(json.dumps(without_impossible(content)))


def write_sentences(folder):
    """vocab.txt, and scored pairs: 5 if both texts have words of one kind, 0 if not."""
    kinds = ['abcdef', 'uvwxyz']
    write_words(folder, [*kinds[0], *kinds[1], '.'])
    rng = random.Random(4)
    for name, count in (('train', 240), ('dev', 40), ('test', 20)):
        lines = ['sentence1\tsentence2\tscore']
        for _ in range(count):
            first, second = rng.randrange(2), rng.randrange(2)
            texts = [' '.join(rng.choices(kinds[n], k=rng.randint(2, 7))) for n in (first, second)]
            lines.append('\t'.join([*texts, '5.0' if first == second else '0.0']))
        (folder / f'{name}.tsv').write_text('\n'.join(lines) + '\n')


def write_situations(folder, train=150):
    """vocab.txt, and sets of three endings as CSV; that with an x is right."""
    write_words(folder, [*'abcdefx', '.'])
    rng = random.Random(3)

    def text(*words):
        words = [*words, *rng.choices('abcdef', k=rng.randint(0, 5))]
        rng.shuffle(words)
        return ' '.join(words) + ' .'

    for name, count in (('train', train), ('val', 24), ('test', 10)):
        rows = [',video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2']
        rows[0] += ',label' if name != 'test' else ''
        for number in range(count):
            label = rng.randrange(3)
            endings = [text('x') if place == label else text() for place in range(3)]
            row = [str(number), 'v', f'{name}{number}', 's', text(), 'a', 'gold', *endings]
            rows.append(','.join([*row, str(label)] if name != 'test' else row))
        (folder / f'{name}.csv').write_text('\n'.join(rows) + '\n')


def write_tagged(folder, train=240):
    """vocab.txt, and sentences.

    Names begin with n and go on with m; of three or four pieces, in short and long sentences.
    """
    write_words(folder, [*'abcdenm', '##x', '##y'])
    rng = random.Random(3)
    for name, count in (('train', train), ('valid', 30), ('test', 12)):
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


def write_letters(folder, symbols):
    """Write vocab.json and merges.txt of GPT's for texts of some symbols; returns their paths."""
    tokens = ['<unk>', *symbols, *(f'{symbol}</w>' for symbol in symbols), 'th', 'the</w>']
    return write_pairs(folder, tokens, ['t h', 'th e</w>'])


def write_stories(folder):
    """A small vocabulary and stories; right endings have an a, wrong ones an x."""
    write_letters(folder, string.ascii_lowercase + '.')
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
    write_letters(folder, string.ascii_lowercase)


def make_corpus(folder, special=('<eos>',)):
    """The corpus of three files of letters in a folder, which are written."""
    from mxnet_pretrained_bert.tokenization_transfo_xl import TransfoXLCorpus

    rng = random.Random(4)
    folder.mkdir(exist_ok=True)
    for name, lines in (('train', 30), ('valid', 12), ('test', 9)):
        text = [' '.join(rng.choices('abcdef', k=rng.randint(2, 9))) for _ in range(lines)]
        (folder / f'{name}.txt').write_text('\n'.join(text) + '\n')
    corpus = TransfoXLCorpus(special=list(special))
    corpus.build_corpus(folder, 'wt2')
    return corpus


#: of the samples for pre-training
COUNTED = [f'w{number}' for number in range(40)]
LENGTH, MASKS = 16, 3
#: flags of the model that learns from them
PRETRAINED = ['--hparams', 'num_layers=1,units=16', 'hidden_size=32,num_heads=2,max_length=16']
#: of the texts in which they count on
FEW = COUNTED[:12]


def make_samples(count, seed, words=40, size=LENGTH, masks=MASKS):
    """Random sentences; one is the next where it begins with the word of the one before."""
    random = np.random.RandomState(seed)
    ids = np.zeros((count, size), np.int32)
    masked = {name: np.zeros((count, masks), np.int32) for name in ('positions', 'ids')}
    masked['weights'] = np.zeros((count, masks), np.float32)
    lengths = random.randint(9, size + 1, count).astype(np.int32)
    labels = random.randint(0, 2, count).astype(np.int32)
    for row, length in enumerate(lengths):
        ids[row, :length] = random.randint(len(SPECIAL), len(SPECIAL) + words, length)
        ids[row, [0, 4, length - 1]] = [2, 3, 3]
        ids[row, 5] = ids[row, 1] if labels[row] == 0 else len(SPECIAL)
        places = 6 + np.arange(random.randint(1, min(masks, length - 7) + 1))
        masked['positions'][row, : len(places)] = places
        masked['ids'][row, : len(places)] = ids[row, places]
        masked['weights'][row, : len(places)] = 1
        ids[row, places] = 4
    segments = ((np.arange(size) > 4) & (np.arange(size) < lengths[:, None])).astype(np.int32)
    return Samples(ids, segments, *masked.values(), labels, lengths)


def write_shards(folder):
    """vocab.txt, and the shards train-0.npz, train-1.npz and eval.npz of 18 samples each."""
    vocab = load_vocab(str(write_words(folder, COUNTED)))
    for seed, name in enumerate(('train-0', 'train-1', 'eval')):
        write_shard(str(folder / f'{name}.npz'), make_samples(18, seed), vocab)


def write_counting(path, documents, seed):
    """Sentences of words that count on, so that a masked word can be told from its neighbours."""
    random = np.random.RandomState(seed)
    lines = []
    for _ in range(documents):
        place = random.randint(len(FEW))
        for _ in range(random.randint(3, 7)):
            length = random.randint(3, 8)
            lines.append(' '.join(FEW[(place + n) % len(FEW)] for n in range(length)))
            place += length
        lines.append('')
    path.write_text('\n'.join(lines), 'utf-8')
