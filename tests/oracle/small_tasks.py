"""Train for five tasks on three small sets each, with this project and others.

    python small_tasks.py TASK SET SEED METHOD MODEL_DIR

prints the score on up to 200 other rows as JSON. `SETS` has the tasks and sets, which are drawn
from the files in ``ZOO_TEST_DATA``. METHOD is ours, before (the epochs and batches of version 1.0),
trainer (transformers' Trainer with its own defaults, which needs accelerate; for pairs with scores
that of sentence-transformers) or, for tags, spacy (its default configuration, with a fifth of the
rows as the dev set that it needs). MODEL_DIR is a folder of sentence-transformers, such as
all-MiniLM-L6-v2. Masked words have their loss, each program with masks of its own.
"""

import json
import pathlib
import pkgutil
import re
import sys
import tempfile
import types

import numpy as np
from small_data import DATA, draw, read_set, run_trainer

#: task -> set -> number of rows to train on
SETS = {
    'token-classification': {'names': 150, 'chunks': 80, 'parts of speech': 80},
    'question-answering': {'squad': 150, 'squad2': 80, 'squad swapped': 60},
    'multiple-choice': {'answers': 80, 'paraphrases': 80, 'stories': 80},
    'sentence-similarity': {'stsb': 150, 'mrpc': 80, 'answers': 80},
    'fill-mask': {'wikitext': 150, 'wikipedia': 80, 'stories': 80},
}
#: task -> classes of transformers, for the model and the batches
CLASSES = {
    'token-classification': ('TokenClassification', 'ForTokenClassification'),
    'question-answering': ('QuestionAnswering', 'WithPadding'),
    'multiple-choice': ('MultipleChoice', 'ForMultipleChoice'),
    'fill-mask': ('MaskedLM', 'ForLanguageModeling'),
}
LENGTH = 96


# -- the sets --------------------------------------------------------------------------------------


def tagged(part, column):
    """Yield sentences of CoNLL-2003: their words, and the tags of a column."""
    for block in (DATA / f'conll2003/{part}.txt').read_text('utf-8').split('\n\n'):
        columns = list(zip(*map(str.split, block.strip().splitlines())))
        if columns and columns[0][0] != '-DOCSTART-' and len(columns[0]) < 60:
            yield columns[0], columns[column]


def questions(part, version='1.1'):
    """Yield questions with the sentence of the answer; without one with any of the paragraph."""
    articles = json.loads((DATA / f'squad/{part}-v{version}-part.json').read_text('utf-8'))['data']
    for paragraph in (each for article in articles for each in article['paragraphs']):
        sentences = re.split(r'(?<=[.!?]) ', paragraph['context'])
        for number, row in enumerate(paragraph['qas']):
            if not row['answers']:
                yield row['question'], sentences[number % len(sentences)], None, None
            for sentence in sentences if row['answers'] else ():
                answer, begin = row['answers'][0], paragraph['context'].find(sentence)
                start = answer['answer_start'] - begin
                if 0 <= start <= len(sentence) - len(answer['text']):
                    yield row['question'], sentence, answer['text'], start
                    break


def choices(pairs):
    """Yield the first text of a pair, the second one and that of another pair, and the label."""
    pairs = draw(pairs, len(pairs))
    for number, (text, right) in enumerate(pairs):
        both = [right, next(pair[1] for pair in pairs[number - 1 :: -1] if pair[1] != right)]
        yield text, both[:: 1 - number % 2 * 2], number % 2


def read(task, name):
    """Return the rows to train on, and others, as `model_zoo.finetune` takes them."""
    parts = ('dev', 'train') if 'swapped' in name else ('train', 'dev')
    if task == 'token-classification':
        column = {'names': 3, 'chunks': 2, 'parts of speech': 1}[name]
        sets = [tagged(part, column) for part in ('train', 'valid')]
    elif task == 'question-answering':
        sets = [questions(part, '2.0' if name == 'squad2' else '1.1') for part in parts]
    elif name in ('answers', 'paraphrases'):
        rows = [[row for row in each if row[2] == '1'] for each in read_set('mrpc')]
        rows = list(map(questions, parts)) if name == 'answers' else rows
        sets = [choices([row[:2] for row in each]) for each in rows]
        if task == 'sentence-similarity':  # the first choice, and whether it is right
            sets = [[(row[0], row[1][0], 1.0 - row[2]) for row in each] for each in sets]
    elif task == 'sentence-similarity':
        sets = [[(*row[:2], float(row[2])) for row in each] for each in read_set(name)]
    else:
        from model_zoo.tasks.choice import read_story_cloze

        file = 'wikitext-2/valid.txt' if name == 'wikitext' else 'text/wiki_00.txt'
        text = re.sub('<doc.*|</doc.*|^ =.*', '', (DATA / file).read_text(), flags=re.MULTILINE)
        rows = [each for each in re.split(r'(?<=[.!?])\s+', text) if 40 < len(each) < 160]
        if name == 'stories':
            stories = read_story_cloze(str(DATA / 'rocstories/cloze_test_val__spring2016.csv'))
            rows = [each.context for each in stories]
            if task == 'multiple-choice':
                rows = [(each.context, each.choices, each.label) for each in stories]
        rows = draw(rows, len(rows))
        sets = rows[:200], rows[200:]
    return [draw(list(rows), count) for rows, count in zip(sets, (SETS[task][name], 200))]


# -- the methods -----------------------------------------------------------------------------------


def train_ours(task, name, train, test, seed, folder, **options):
    """Return the predictions; of masked words the loss."""
    import model_zoo

    options.update(seed=seed, max_length=LENGTH)
    if task == 'question-answering':
        options.update(version_2=name == 'squad2', max_query_length=32, doc_stride=32)
    if task == 'token-classification':  # some tags are only in the other rows
        options['labels'] = sorted({tag for _, tags in (*train, *test) for tag in tags})
    trained = model_zoo.finetune(folder, task, train, test=test, **options)
    return trained.test_scores['mlm_loss'] if task == 'fill-mask' else trained.predictions


def train_before(task, *args):
    """Train with the epochs and batches that are now for many rows."""
    from model_zoo.app.finetune import TASKS

    usual = pkgutil.resolve_name(f'model_zoo.tasks.{TASKS[task]}').settings_class.defaults()
    return train_ours(task, *args, epochs=usual['epochs'], batch_size=usual['batch_size'])


def encode(tokenizer, task, row):
    """Return a row of a task for transformers, without its label."""
    texts = {'token-classification': row[:1], 'question-answering': row[:2], 'fill-mask': [row]}
    texts = texts.get(task, ([row[0]] * 2, row[1]))
    options = {'padding': task == 'multiple-choice', 'truncation': True, 'max_length': LENGTH}
    return tokenizer(*texts, **options, is_split_into_words=task == 'token-classification')


def encode_labelled(tokenizer, task, row, labels):
    found = encode(tokenizer, task, row)
    if task == 'token-classification':  # of a word's first piece
        found['labels'] = [-100] * len(found['input_ids'])
        for number, tag in enumerate(row[1]):
            pieces = found.word_to_tokens(number)  # None where the text was cut
            if pieces:
                found['labels'][pieces.start] = labels.index(tag)
    elif task == 'multiple-choice':
        found['labels'] = row[2]
    elif task == 'question-answering':  # without an answer both are 0
        places = (row[3], row[3] + len(row[2]) - 1) if row[2] else ()
        span = [found.char_to_token(place, sequence_index=1) or 0 for place in places]
        found['start_positions'], found['end_positions'] = span or (0, 0)
    return dict(found)


def decode(task, row, found, outputs, labels, has_none):
    """Return the prediction for a row from the outputs of transformers' model."""
    if task == 'multiple-choice':
        return int(outputs.logits.argmax())
    if task == 'token-classification':
        best = outputs.logits[0].argmax(-1)
        pieces = map(found.word_to_tokens, range(len(row[0])))
        return [labels[best[each.start]] if each else 'O' for each in pieces]
    scores = outputs.start_logits[0][:, None].numpy() + outputs.end_logits[0].numpy()
    in_text = np.array(found.sequence_ids()) == 1
    allowed = np.triu(np.tril(in_text[:, None] & in_text, 29))
    allowed[0, 0] = has_none
    first, last = np.unravel_index(np.where(allowed, scores, -np.inf).argmax(), scores.shape)
    span = [found.token_to_chars(place) for place in (first, last) if first]
    return row[1][span[0].start : span[1].end] if span else ''


def train_trainer(task, name, train, test, seed, folder):
    import torch
    import transformers

    if task == 'sentence-similarity':
        return train_encoder(train, test, seed, folder)
    transformers.set_seed(seed)
    model_name, collator = CLASSES[task]
    is_tags = task == 'token-classification'
    labels = sorted({tag for _, tags in train for tag in tags}) if is_tags else ['', '']
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    opener = getattr(transformers, f'AutoModelFor{model_name}')
    model = opener.from_pretrained(folder, num_labels=len(labels))
    collate = getattr(transformers, f'DataCollator{collator}')(tokenizer)
    samples = [encode_labelled(tokenizer, task, row, labels) for row in train]
    trainer = run_trainer(model, samples, collate, seed)
    encoded = [encode(tokenizer, task, row) for row in test]
    if task == 'fill-mask':
        return trainer.evaluate(list(map(dict, encoded)))['eval_loss']
    found, _ = [], model.eval()
    for row, sample in zip(test, encoded):
        with torch.no_grad():
            outputs = model(**{key: torch.tensor([value]) for key, value in sample.items()})
        found.append(decode(task, row, sample, outputs, labels, name == 'squad2'))
    return found


def train_encoder(train, test, seed, folder):
    """Train as transformers' Trainer does, by a subclass of it; returns the cosines."""
    import datasets
    import sentence_transformers
    from sentence_transformers.losses import CosineSimilarityLoss

    model, highest = sentence_transformers.SentenceTransformer(folder), max(r[2] for r in train)
    rows = datasets.Dataset.from_list(
        [{'one': one, 'other': other, 'score': score / highest} for one, other, score in train]
    )
    with tempfile.TemporaryDirectory() as output:
        options = sentence_transformers.SentenceTransformerTrainingArguments(
            output, seed=seed, report_to=[], save_strategy='no'
        )
        loss = CosineSimilarityLoss(model)
        trainer = sentence_transformers.SentenceTransformerTrainer
        trainer(model, options, train_dataset=rows, loss=loss).train()
    vectors = (model.encode([row[side] for row in test]) for side in (0, 1))
    return model.similarity_pairwise(*vectors).tolist()


def train_spacy(task, name, train, test, seed, folder):
    import spacy
    from spacy.cli.init_config import init_config
    from spacy.tokens import Doc, DocBin
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train as train_pipeline

    part, field = ('tagger', 'tags') if name == 'parts of speech' else ('ner', 'ents')
    config, vocab = init_config(lang='en', pipeline=[part]), spacy.blank('en').vocab
    config['training']['seed'] = seed
    with tempfile.TemporaryDirectory() as output:
        for each, is_dev in (('train', False), ('dev', True)):
            rows = [row for number, row in enumerate(train) if (number % 5 == 0) == is_dev]
            docs = [Doc(vocab, list(words), **{field: list(tags)}) for words, tags in rows]
            config['paths'][each] = f'{output}/{each}.spacy'
            DocBin(docs=docs).to_disk(config['paths'][each])
        train_pipeline(init_nlp(config), pathlib.Path(output))
        nlp = spacy.load(f'{output}/model-best')
    docs = [nlp(Doc(nlp.vocab, list(words))) for words, _ in test]
    if part == 'tagger':
        return [[token.tag_ for token in doc] for doc in docs]
    return [[f'{t.ent_iob_}-{t.ent_type_}'.rstrip('-') for t in doc] for doc in docs]


def score(task, name, test, found):
    """Return the score: a correlation, F1 of spans or words, an accuracy, or a loss."""
    if task == 'fill-mask':
        return found
    if task == 'question-answering':
        from model_zoo.tasks.squad import score_v2

        answers = ([row[2]] if row[2] else [] for row in test)
        rows = [types.SimpleNamespace(id=n, answers=each) for n, each in enumerate(answers)]
        return score_v2(rows, dict(enumerate(found)))['f1'] / 100
    expected = [row[-1] for row in test]
    if task == 'sentence-similarity':
        from scipy.stats import spearmanr

        return spearmanr(expected, found)[0]
    if task == 'token-classification' and name != 'parts of speech':
        from seqeval.metrics import f1_score

        return f1_score(list(map(list, expected)), found)
    return np.mean(np.hstack(expected) == np.hstack(found))


def main():
    task, name, seed, method, folder = sys.argv[1:]
    train, test = read(task, name)
    found = globals()[f'train_{method}'](task, name, train, test, int(seed), folder)
    rows = {'train': len(train), 'test': len(test)}
    print(json.dumps({'score': float(score(task, name, test, found)), **rows}))


if __name__ == '__main__':
    main()
