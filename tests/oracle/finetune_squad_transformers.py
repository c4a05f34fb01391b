"""The recipe of README's SQuAD results in transformers: what ours is measured against.

    python finetune_squad_transformers.py --model MINILM_DIR --train_file train-v1.1.json \\
        --predict_file dev-v1.1.json --epochs 8 --lr 2e-4 --seed 1 [--version_2] [--save FOLDER]

Windows, answers and metrics are transformers' own too.
"""

import argparse
import json
import logging
import os
import time

import numpy as np
import torch
from transformers import BertForQuestionAnswering, BertTokenizer, get_linear_schedule_with_warmup
from transformers.data.metrics.squad_metrics import compute_predictions_logits, squad_evaluate
from transformers.data.processors.squad import (
    SquadResult,
    SquadV1Processor,
    SquadV2Processor,
    squad_convert_examples_to_features,
)


def windows(examples, tokenizer, args, training):
    return squad_convert_examples_to_features(
        examples, tokenizer, args.max_seq_length, 128, 64, training, tqdm_enabled=False
    )


def inputs_of(features):
    """Tensors, cut to the longest window."""
    length = max(sum(feature.attention_mask) for feature in features)
    names = ('input_ids', 'token_type_ids', 'attention_mask')
    rows = {name: [getattr(feature, name)[:length] for feature in features] for name in names}
    return {name: torch.tensor(each) for name, each in rows.items()}


def batches(features, size, rng):
    """Shuffled, of similar lengths, as ours are."""
    order = rng.permutation(len(features))
    lengths = [sum(feature.attention_mask) for feature in features]
    parts = []
    for start in range(0, len(order), 8 * size):
        chunk = sorted(order[start : start + 8 * size], key=lengths.__getitem__)
        parts += [chunk[place : place + size] for place in range(0, len(chunk), size)]
    for place in rng.permutation(len(parts)):
        yield [features[number] for number in parts[place]]


def evaluate(model, examples, features, tokenizer, args):
    model.eval()
    results = []
    with torch.no_grad():
        for start in range(0, len(features), 24):
            part = features[start : start + 24]
            inputs = inputs_of(part)
            outputs = model(**inputs)
            for row, feature in enumerate(part):
                size = sum(feature.attention_mask)
                scores = (outputs.start_logits, outputs.end_logits)
                scores = [each[row, :size].tolist() for each in scores]
                results.append(SquadResult(feature.unique_id, *scores))
    predictions = compute_predictions_logits(
        examples,
        features,
        results,
        20,
        30,
        True,
        None,
        None,
        None,
        False,
        args.version_2,
        0.0,
        tokenizer,
    )
    return squad_evaluate(examples, predictions)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', required=True)
    parser.add_argument('--train_file', required=True)
    parser.add_argument('--predict_file', required=True)
    parser.add_argument('--version_2', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--lr', type=float, default=2e-4)
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch_size', type=int, default=12)
    parser.add_argument('--max_seq_length', type=int, default=256)
    parser.add_argument('--save', help='folder for the model after the last epoch')
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.manual_seed(args.seed)
    rng = np.random.RandomState(args.seed)
    tokenizer = BertTokenizer.from_pretrained(args.model)
    model = BertForQuestionAnswering.from_pretrained(args.model)
    processor = SquadV2Processor() if args.version_2 else SquadV1Processor()
    folder, name = os.path.split(args.train_file)
    train = windows(processor.get_train_examples(folder, name), tokenizer, args, True)
    folder, name = os.path.split(args.predict_file)
    examples = processor.get_dev_examples(folder, name)
    dev = windows(examples, tokenizer, args, False)
    steps = args.epochs * -(-len(train) // args.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, eps=1e-6, weight_decay=0.0)
    schedule = get_linear_schedule_with_warmup(optimizer, int(0.1 * steps), steps)
    started, best = time.time(), {'f1': 0}
    for epoch in range(args.epochs):
        model.train()
        for part in batches(train, args.batch_size, rng):
            loss = model(
                **inputs_of(part),
                start_positions=torch.tensor([each.start_position for each in part]),
                end_positions=torch.tensor([each.end_position for each in part]),
            ).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        metrics = evaluate(model, examples, dev, tokenizer, args)
        best = max(best, {**metrics, 'epoch': epoch + 1}, key=lambda each: each['f1'])
        seconds = round(time.time() - started)
        print(json.dumps({'epoch': epoch + 1, 'seconds': seconds, **metrics}), flush=True)
    print(json.dumps({'seed': args.seed, 'best': best, 'last': metrics}))
    if args.save:
        model.save_pretrained(args.save)
        tokenizer.save_pretrained(args.save)


if __name__ == '__main__':
    main()
