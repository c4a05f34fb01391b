"""The recipes of the MRPC, SQuAD and CoNLL-2003 results in transformers: ours are measured by them.

    python finetune_transformers.py mrpc MINILM_DIR train.tsv dev.tsv
    python finetune_transformers.py squad MINILM_DIR train-v1.1.json dev-v1.1.json [--save FOLDER]
    python finetune_transformers.py tagging MINILM_DIR train.txt valid.txt --lr 1e-4

``--version_2`` takes the questions without an answer, too; SQuAD needs transformers 4. Batches,
windows, answers and metrics are transformers' own, scikit-learn's and seqeval's.
"""

import argparse
import csv
import json
import logging
import os
import time

import numpy as np
import seqeval.metrics
import torch
import transformers
from sklearn.metrics import accuracy_score, f1_score

#: task -> class of the model, learning rate, epochs, batch size, longest text
TASKS = {
    'mrpc': ('BertForSequenceClassification', 5e-5, 3, 32, 128),
    'squad': ('BertForQuestionAnswering', 2e-4, 8, 12, 256),
    'tagging': ('BertForTokenClassification', 1e-4, 3, 32, 128),
}


class MRPC:
    best = 'accuracy'
    options = {'num_labels': 2}

    def __init__(self, args):
        self.args = args
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
        self.train, self.dev = map(self.read, (args.train, args.dev))

    def read(self, path):
        with open(path, encoding='utf-8-sig', newline='') as file:
            rows = list(csv.reader(file, delimiter='\t', quoting=csv.QUOTE_NONE))[1:]
        return [(row[3], row[4], int(row[0])) for row in rows]

    def batches(self, rng):
        size, order = self.args.batch_size, rng.permutation(len(self.train))
        for start in range(0, len(order), size):
            yield self.encode([self.train[place] for place in order[start : start + size]])

    def encode(self, examples):
        first, second, labels = map(list, zip(*examples))
        options = {'truncation': True, 'max_length': self.args.max_length, 'padding': True}
        inputs = self.tokenizer(first, second, return_tensors='pt', **options)
        return {**inputs, 'labels': torch.tensor(labels)}

    def evaluate(self, model):
        predicted = []
        for start in range(0, len(self.dev), 32):
            predicted += model(**self.encode(self.dev[start : start + 32])).logits.argmax(-1)
        truth = [label for _, _, label in self.dev]
        return {'accuracy': accuracy_score(truth, predicted), 'f1': f1_score(truth, predicted)}

    def parameters(self, model):
        return [{'params': list(model.parameters()), 'weight_decay': 0.01}]


class Tagging(MRPC):
    best = 'f1'

    def __init__(self, args):
        super().__init__(args)
        self.names = sorted({label for sentence in self.train for _, label in sentence})
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.options = {'num_labels': len(self.names)}

    def read(self, path):
        """Sentences as lists of (word, label)."""
        sentences = [[]]
        with open(path, encoding='utf-8') as file:
            for line in file:
                fields = line.split()
                if not fields or fields[0] == '-DOCSTART-':
                    sentences.append([])
                else:
                    sentences[-1].append((fields[0], fields[-1]))
        return [sentence for sentence in sentences if sentence]

    def encode(self, examples):
        """Batch for the model; labels on first pieces, -100 elsewhere."""
        words = [[word for word, _ in sentence] for sentence in examples]
        options = {'truncation': True, 'max_length': self.args.max_length, 'padding': True}
        inputs = self.tokenizer(words, is_split_into_words=True, return_tensors='pt', **options)
        labels = torch.full_like(inputs['input_ids'], -100)
        for row, sentence in enumerate(examples):
            seen = set()
            for place, word in enumerate(inputs.word_ids(row)):
                if word is not None and word not in seen:
                    labels[row, place] = self.numbers[sentence[word][1]]
                    seen.add(word)
        return {**inputs, 'labels': labels}

    def evaluate(self, model):
        right, found = [], []
        for start in range(0, len(self.dev), 32):
            part = self.dev[start : start + 32]
            inputs = self.encode(part)
            predicted = model(**inputs).logits.argmax(-1)
            for sentence, row, own in zip(part, predicted, inputs['labels']):
                words = [self.names[number] for number in row[own != -100].tolist()]
                # words that were cut off are outside of entities
                found.append(words + ['O'] * (len(sentence) - len(words)))
                right.append([label for _, label in sentence])
        scores = ('f1', 'precision', 'recall')
        return {
            name: float(getattr(seqeval.metrics, f'{name}_score')(right, found)) for name in scores
        }

    def parameters(self, model):
        groups = {True: [], False: []}
        for name, parameter in model.named_parameters():
            groups[name.endswith('bias') or 'LayerNorm' in name].append(parameter)
        return [
            {'params': groups[False], 'weight_decay': 0.01},
            {'params': groups[True], 'weight_decay': 0},
        ]


class SQuAD:
    best = 'f1'
    options = {}

    def __init__(self, args):
        from transformers.data.metrics import squad_metrics
        from transformers.data.processors import squad

        self.args, self.squad, self.metrics = args, squad, squad_metrics
        self.tokenizer = transformers.BertTokenizer.from_pretrained(args.model)
        processor = squad.SquadV2Processor() if args.version_2 else squad.SquadV1Processor()
        self.train = self.windows(processor.get_train_examples(*os.path.split(args.train)), True)
        self.examples = processor.get_dev_examples(*os.path.split(args.dev))
        self.dev = self.windows(self.examples, False)

    def windows(self, examples, training):
        return self.squad.squad_convert_examples_to_features(
            examples, self.tokenizer, self.args.max_length, 128, 64, training, tqdm_enabled=False
        )

    def inputs_of(self, features):
        """Tensors, cut to the longest window."""
        length = max(sum(feature.attention_mask) for feature in features)
        names = ('input_ids', 'token_type_ids', 'attention_mask')
        rows = {name: [getattr(feature, name)[:length] for feature in features] for name in names}
        return {name: torch.tensor(each) for name, each in rows.items()}

    def batches(self, rng):
        """Shuffled, of similar lengths, as ours are."""
        size, order = self.args.batch_size, rng.permutation(len(self.train))
        lengths = [sum(feature.attention_mask) for feature in self.train]
        parts = []
        for start in range(0, len(order), 8 * size):
            chunk = sorted(order[start : start + 8 * size], key=lengths.__getitem__)
            parts += [chunk[place : place + size] for place in range(0, len(chunk), size)]
        for place in rng.permutation(len(parts)):
            part = [self.train[number] for number in parts[place]]
            ends = ('start_position', 'end_position')
            spans = {f'{end}s': torch.tensor([getattr(each, end) for each in part]) for end in ends}
            yield {**self.inputs_of(part), **spans}

    def evaluate(self, model):
        results = []
        for start in range(0, len(self.dev), 24):
            part = self.dev[start : start + 24]
            outputs = model(**self.inputs_of(part))
            for row, feature in enumerate(part):
                size = sum(feature.attention_mask)
                scores = (outputs.start_logits, outputs.end_logits)
                scores = [each[row, :size].tolist() for each in scores]
                results.append(self.squad.SquadResult(feature.unique_id, *scores))
        options = (20, 30, True, None, None, None, False, self.args.version_2, 0.0, self.tokenizer)
        predictions = self.metrics.compute_predictions_logits(
            self.examples, self.dev, results, *options
        )
        return self.metrics.squad_evaluate(self.examples, predictions)

    def parameters(self, model):
        return [{'params': list(model.parameters()), 'weight_decay': 0.0}]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('task', choices=TASKS)
    for name in ('model', 'train', 'dev'):
        parser.add_argument(name)
    kinds = {'lr': float, 'epochs': int, 'batch_size': int, 'max_length': int}
    for name, kind in kinds.items():
        parser.add_argument(f'--{name}', type=kind, help="the recipe's unless given")
    parser.add_argument('--warmup_ratio', type=float, default=0.1)
    parser.add_argument('--version_2', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--save', help='folder for the model after the last epoch')
    args = parser.parse_args()
    class_name, *recipe = TASKS[args.task]
    for name, value in zip(('lr', 'epochs', 'batch_size', 'max_length'), recipe):
        if getattr(args, name) is None:
            setattr(args, name, value)
    logging.disable(logging.WARNING)
    torch.manual_seed(args.seed)
    rng = np.random.RandomState(args.seed)
    task = {'mrpc': MRPC, 'squad': SQuAD, 'tagging': Tagging}[args.task](args)
    model = getattr(transformers, class_name).from_pretrained(args.model, **task.options)
    optimizer = torch.optim.AdamW(task.parameters(model), lr=args.lr, eps=1e-6)
    steps = args.epochs * -(-len(task.train) // args.batch_size)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(args.warmup_ratio * steps), steps
    )
    started, results = time.time(), []
    for epoch in range(args.epochs):
        model.train()
        for batch in task.batches(rng):
            model(**batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        seconds = round(time.time() - started)
        model.eval()
        with torch.no_grad():
            scores = task.evaluate(model)
        results.append({'seed': args.seed, 'epoch': epoch + 1, 'seconds': seconds, **scores})
        print(json.dumps(results[-1]), flush=True)
    print('best', json.dumps(max(results, key=lambda each: each[task.best])))
    if args.save:
        model.save_pretrained(args.save)
        task.tokenizer.save_pretrained(args.save)


if __name__ == '__main__':
    main()
