"""The recipe of README's CoNLL-2003 result in transformers: what ours is measured against.

python finetune_tagging_transformers.py --model MINILM_DIR --train train.txt --dev valid.txt
"""

import argparse
import json
import time

import numpy as np
import torch
from seqeval.metrics import f1_score, precision_score, recall_score
from transformers import AutoTokenizer, BertForTokenClassification, get_linear_schedule_with_warmup


def read(path):
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


def encode(sentences, tokenizer, numbers, max_length):
    """Batch for the model; labels on first pieces, -100 elsewhere."""
    words = [[word for word, _ in sentence] for sentence in sentences]
    options = {'truncation': True, 'max_length': max_length, 'padding': True}
    inputs = tokenizer(words, is_split_into_words=True, return_tensors='pt', **options)
    labels = torch.full_like(inputs['input_ids'], -100)
    for row, sentence in enumerate(sentences):
        seen = set()
        for place, word in enumerate(inputs.word_ids(row)):
            if word is not None and word not in seen:
                labels[row, place] = numbers[sentence[word][1]]
                seen.add(word)
    return inputs, labels


def evaluate(model, sentences, tokenizer, names, numbers, max_length):
    right, found = [], []
    for start in range(0, len(sentences), 32):
        part = sentences[start : start + 32]
        inputs, labels = encode(part, tokenizer, numbers, max_length)
        with torch.no_grad():
            predicted = model(**inputs).logits.argmax(-1)
        for sentence, row, own in zip(part, predicted, labels):
            words = [names[number] for number in row[own != -100].tolist()]
            # words that were cut off are outside of entities
            found.append(words + ['O'] * (len(sentence) - len(words)))
            right.append([label for _, label in sentence])
    scores = {'f1': f1_score, 'precision': precision_score, 'recall': recall_score}
    return {name: float(score(right, found)) for name, score in scores.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', required=True)
    parser.add_argument('--train', required=True)
    parser.add_argument('--dev', required=True)
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--batch_size', type=int, default=32)
    parser.add_argument('--lr', type=float, default=1e-4)
    parser.add_argument('--warmup_ratio', type=float, default=0.1)
    parser.add_argument('--max_length', type=int, default=128)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.RandomState(args.seed)
    train, dev = read(args.train), read(args.dev)
    names = sorted({label for sentence in train for _, label in sentence})
    numbers = {name: number for number, name in enumerate(names)}
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = BertForTokenClassification.from_pretrained(args.model, num_labels=len(names))
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        is_other = name.endswith('bias') or 'LayerNorm' in name
        (others if is_other else decayed).append(parameter)
    groups = [{'params': decayed, 'weight_decay': 0.01}, {'params': others, 'weight_decay': 0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, eps=1e-6)
    steps = args.epochs * -(-len(train) // args.batch_size)
    schedule = get_linear_schedule_with_warmup(optimizer, int(args.warmup_ratio * steps), steps)
    started = time.time()
    for epoch in range(args.epochs):
        model.train()
        order = rng.permutation(len(train))
        for start in range(0, len(order), args.batch_size):
            part = [train[place] for place in order[start : start + args.batch_size]]
            inputs, labels = encode(part, tokenizer, numbers, args.max_length)
            model(**inputs, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        trained = time.time() - started
        model.eval()
        scores = evaluate(model, dev, tokenizer, names, numbers, args.max_length)
        print(json.dumps({'epoch': epoch + 1, **scores, 'seconds': trained}), flush=True)


if __name__ == '__main__':
    main()
