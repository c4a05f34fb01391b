"""The recipe of README's MRPC result in transformers: what ours is measured against.

python finetune_mrpc_transformers.py --model MINILM_DIR --data_dir glue/MRPC --seed 1
"""

import argparse
import csv
import json
import time

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    get_linear_schedule_with_warmup,
)


def read(path):
    with open(path, encoding='utf-8-sig', newline='') as file:
        rows = list(csv.reader(file, delimiter='\t', quoting=csv.QUOTE_NONE))[1:]
    return [(row[3], row[4], int(row[0])) for row in rows]


def batches(examples, order, size, tokenizer):
    for start in range(0, len(order), size):
        part = [examples[i] for i in order[start : start + size]]
        first, second, labels = map(list, zip(*part))
        options = {'truncation': True, 'max_length': 128, 'padding': True, 'return_tensors': 'pt'}
        yield tokenizer(first, second, **options), torch.tensor(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', required=True)
    parser.add_argument('--data_dir', required=True)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--warmup_ratio', type=float, default=0.1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.RandomState(args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = BertForSequenceClassification.from_pretrained(args.model, num_labels=2)
    train, dev = (read(f'{args.data_dir}/{name}.tsv') for name in ('train', 'dev'))
    steps = 3 * -(-len(train) // 32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, eps=1e-6, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, int(args.warmup_ratio * steps), steps)
    started, best = time.time(), {'accuracy': 0}
    for epoch in range(3):
        model.train()
        for inputs, labels in batches(train, rng.permutation(len(train)), 32, tokenizer):
            loss = model(**inputs, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        predicted = []
        with torch.no_grad():
            for inputs, _ in batches(dev, range(len(dev)), 32, tokenizer):
                predicted += model(**inputs).logits.argmax(-1).tolist()
        truth = [label for _, _, label in dev]
        scores = {'accuracy': accuracy_score(truth, predicted), 'f1': f1_score(truth, predicted)}
        result = {'seed': args.seed, 'epoch': epoch, **scores, 'seconds': time.time() - started}
        print(json.dumps(result), flush=True)
        best = max(best, result, key=lambda record: record['accuracy'])
    print('best', json.dumps(best))


if __name__ == '__main__':
    main()
