"""Embed, fine-tune, export and predict with real pretrained weights.

    python scripts/demo.py

Embeds a few sentences with all-MiniLM-L6-v2 (bert_6_384_12), fine-tunes the same weights on the
small sentiment data of scripts/demo_data, exports the best model to symbol.json, and predicts with
the export in a new process. It fails if the fine-tuned model isn't clearly better than the most
frequent label.
"""

import os
import pathlib
import subprocess
import sys

from model_zoo.app import cli
from model_zoo.util.files import make_writable_dir
from model_zoo.util.reading import read_json

SCRIPTS = pathlib.Path(__file__).resolve().parent
DATA = SCRIPTS / 'demo_data'
MODEL = 'bert_6_384_12'
MARGIN = 0.15  # over the most frequent label's share of the dev set

SENTENCES = [
    'The bank raised its interest rates again.',
    'The central bank has made borrowing more expensive.',
    'The cat sleeps on the warm windowsill.',
    'A kitten is dozing in the sun.',
]
NEW_SENTENCES = [
    'The soup was cold and the waiter rude.',
    'These boots kept my feet dry for a whole winter.',
    'It broke on the second day.',
    'The guide was funny and knew every corner of the town.',
]


def main(argv=None):
    """Run all steps."""
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('--output_dir', default=os.path.join('output_dir', 'demo'))
    parser.add_argument('--epochs', type=int, default=4)
    args = parser.parse_args(argv)
    folder = make_writable_dir(args.output_dir)
    best, exported = (os.path.join(folder, name) for name in ('best_model', 'exported'))

    print('\n[1/4] embed sentences, and find the nearest other one by cosine', flush=True)
    embed()
    again = [] if 'output_dir' in args.given else ['--overwrite_output_dir']
    run(
        f'[2/4] fine-tune {MODEL} on {DATA.name} for {args.epochs} epochs',
        *('finetune_classifier.py', '--task_name', 'SST', '--data_dir', DATA, '--model', MODEL),
        *('--epochs', args.epochs, '--batch_size', 16, '--lr', 5e-5, '--max_length', 64),
        *('--output_dir', folder, *again),
    )
    accuracy = read_json(os.path.join(folder, 'results.json'))['best']['dev']['accuracy']
    run(
        '[3/4] export the best epoch to symbol.json',
        *('../export/export.py', '--task', 'classification', '--model_name', best),
        *('--output_dir', exported, '--seq_length', 64),
    )
    run(
        '[4/4] load the export in a new process, and predict (1: content, 0: not)',
        *('demo_predict.py', os.path.join(exported, 'classification'), best, *NEW_SENTENCES),
    )

    from model_zoo.records import read_records

    labels = [row['label'] for _, row in read_records(str(DATA / 'dev.tsv'))]
    majority = max(map(labels.count, labels)) / len(labels)
    print(f'\nmost frequent label    {majority:.3f} accuracy on the dev set')
    print(f'fine-tuned             {accuracy:.3f}')
    for name in ('curves.png', 'results.json', 'best_model', 'exported/classification-symbol.json'):
        print(os.path.join(folder, *name.split('/')))
    if accuracy < majority + MARGIN:
        raise SystemExit(f'the accuracy is not {MARGIN} above the most frequent label')


def embed():
    import numpy as np

    from bert_embedding import BertEmbedding

    embedding = BertEmbedding(model=MODEL)
    vectors = embedding.sentence_vectors(SENTENCES, pooling='mean', normalize=True)
    cosine = vectors @ vectors.T  # the vectors have length 1
    np.fill_diagonal(cosine, -1)
    pairs = {tuple(sorted(pair)) for pair in enumerate(cosine.argmax(axis=1))}
    for first, second in sorted(pairs, key=lambda pair: -cosine[pair]):
        print(f'{cosine[first, second]:.2f}  {SENTENCES[first]}\n      {SENTENCES[second]}')


def run(title, script, *args):
    """Run one of the project's scripts with this Python, and show its output."""
    print(f'\n{title}', flush=True)
    subprocess.run([sys.executable, str((SCRIPTS / script).resolve()), *map(str, args)], check=True)


if __name__ == '__main__':
    cli.run_script(main)
