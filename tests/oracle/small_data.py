"""Train on five small sets with this project, transformers' Trainer and SetFit's method.

    python small_data.py CONTENDER SET SEED MODEL_DIR

prints the scores on the dev set as JSON. CONTENDER is ours, linear, trainer or setfit; SET is sst2,
squad_topics, cola, mrpc or stsb, which are drawn from the files in ``ZOO_TEST_DATA``. MODEL_DIR is
a folder of sentence-transformers, such as all-MiniLM-L6-v2. Trainer has its own defaults and needs
accelerate. SetFit's method is its two steps: an epoch of the encoder on pairs of texts, whose
vectors are to be alike if the labels are (4 pairs a row, batches of 16, a learning rate of 2e-5),
then a logistic regression on the vectors. For numbers it is a ridge regression on them alone.
"""

import csv
import json
import os
import pathlib
import random
import sys
import tempfile
import time

import numpy as np

DATA = pathlib.Path(os.environ['ZOO_TEST_DATA'])
#: set -> files of training and dev rows, the columns of texts and label, rows of each that are used
TABLES = {
    'sst2': ('SST-2/train.tsv', 'SST-2/dev.tsv', (0, 1), 200, 200),
    'cola': ('CoLA/train.tsv', 'CoLA/dev.tsv', (3, 1), 200, 200),
    'mrpc': ('MRPC/train.tsv', 'MRPC/dev.tsv', (3, 4, 0), 150, 200),
    'stsb': ('STS-B/train.tsv', 'STS-B/dev.tsv', (7, 8, 9), 150, 200),
}


def draw(rows, count):
    return [rows[place] for place in np.random.RandomState(0).permutation(len(rows))[:count]]


def read_set(name):
    """Return training and dev rows, tuples of one or two texts and a label."""
    if name == 'squad_topics':  # the article that a question is about
        files = (DATA / 'squad' / f'{part}-v2.0-part.json' for part in ('train', 'dev'))
        articles = [article for path in files for article in json.loads(path.read_text())['data']]
        rows = {
            (question['question'].strip(), article['title'])
            for article in articles
            for paragraph in article['paragraphs']
            for question in paragraph['qas']
        }
        rows = draw(sorted(rows), len(rows))
        return rows[:60], rows[60:260]
    *files, columns, train, dev = TABLES[name]
    sets = []
    for path, count in zip(files, (train, dev)):
        with open(DATA / 'glue' / path, encoding='utf-8-sig', newline='') as file:
            rows = list(csv.reader(file, delimiter='\t', quoting=csv.QUOTE_NONE))
        rows = [tuple(row[column] for column in columns) for row in rows[name != 'cola' :]]
        sets.append(rows if len(rows) == count else draw(rows, count))
    return sets


def train_ours(train, dev, seed, folder, is_number, **options):
    import model_zoo

    if is_number:
        train, dev = ([(*row[:-1], float(row[-1])) for row in rows] for rows in (train, dev))
        options['regression'] = True
    trained = model_zoo.finetune(
        folder, 'text-classification', train, test=dev, seed=seed, max_length=128, **options
    )
    return trained.predictions


def train_transformers(train, dev, seed, folder, is_number):
    import transformers

    transformers.set_seed(seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    labels = sorted({row[-1] for row in train})
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=1 if is_number else len(labels)
    )

    def encode(row):
        label = float(row[-1]) if is_number else labels.index(row[-1])
        return {**tokenizer(*row[:-1], truncation=True, max_length=128), 'labels': label}

    collate = transformers.DataCollatorWithPadding(tokenizer)
    trainer = run_trainer(model, list(map(encode, train)), collate, seed)
    outputs = trainer.predict(list(map(encode, dev))).predictions
    return outputs[:, 0] if is_number else [labels[number] for number in outputs.argmax(-1)]


def run_trainer(model, samples, collate, seed):
    """Train with transformers' own defaults; returns the trainer."""
    import transformers

    with tempfile.TemporaryDirectory() as output:
        options = transformers.TrainingArguments(
            output, seed=seed, report_to=[], save_strategy='no'
        )
        trainer = transformers.Trainer(model, options, collate, train_dataset=samples)
        trainer.train()
    return trainer


def train_setfit(train, dev, seed, folder, is_number):
    import torch
    from sentence_transformers import SentenceTransformer, losses
    from sklearn.linear_model import LogisticRegression, Ridge

    torch.manual_seed(seed)
    rng, body = random.Random(seed), SentenceTransformer(folder)
    texts, labels = [' [SEP] '.join(row[:-1]) for row in train], [row[-1] for row in train]
    if not is_number:
        alike = {
            label: [t for t, other in zip(texts, labels) if other == label] for label in labels
        }
        pairs = []
        for text, label in list(zip(texts, labels)) * 2:
            other = rng.choice(sorted(alike.keys() - {label}))
            pairs += [(text, rng.choice(alike[label]), 1.0), (text, rng.choice(alike[other]), 0.0)]
        rng.shuffle(pairs)
        steps, loss = -(-len(pairs) // 16), losses.CosineSimilarityLoss(body)
        optimizer = torch.optim.AdamW(body.parameters(), lr=2e-5)
        rates = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda n: min((n + 1) / max(1, steps // 10), (steps - n) / (0.9 * steps))
        )
        body.train()
        for start in range(0, len(pairs), 16):
            first, second, targets = zip(*pairs[start : start + 16])
            features = [body.tokenize(list(side)) for side in (first, second)]
            loss(features, torch.tensor(targets)).backward()
            torch.nn.utils.clip_grad_norm_(body.parameters(), 1.0)
            optimizer.step()
            rates.step()
            optimizer.zero_grad()
        body.eval()
    head = Ridge() if is_number else LogisticRegression(max_iter=1000)
    head.fit(body.encode(texts), list(map(float, labels)) if is_number else labels)
    return head.predict(body.encode([' [SEP] '.join(row[:-1]) for row in dev]))


def main():
    contender, name, seed, folder = sys.argv[1:]
    (train, dev), is_number, started = read_set(name), name == 'stsb', time.time()
    functions = {'trainer': train_transformers, 'setfit': train_setfit}
    options = {'method': 'linear'} if contender == 'linear' else {}
    function = functions.get(contender, train_ours)
    predictions = function(train, dev, int(seed), folder, is_number, **options)
    expected = [row[-1] for row in dev]
    if is_number:
        numbers = (np.array(values, float) for values in (predictions, expected))
        scores = {'pearson': float(np.corrcoef(*numbers)[0, 1])}
    else:
        from sklearn.metrics import accuracy_score, f1_score

        scores = {
            'accuracy': accuracy_score(expected, predictions),
            'macro_f1': f1_score(expected, predictions, average='macro'),
        }
    print(json.dumps({'seconds': round(time.time() - started, 1), **scores}))


if __name__ == '__main__':
    main()
