"""pytorch-pretrained-bert's examples train as ours of their names do: the losses of all updates.

``ZOO_ORIGINAL_TESTS`` names the folder of the tests of version 0.6.2. The examples are beside it;
neither is part of this project. All examples of a set are in one batch, whose order has no effect,
and there is no dropout.
"""

import json
import random
import sys

import numpy as np
import pytest
import tiny
from command_flags import main_of
from script_runs import ROOT, load_script, read_json, run

import bert

torch = pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore')]
CHECKOUT = 'ZOO_ORIGINAL_TESTS'

WORDS = ['good', 'bad', 'film', 'the', 'cat', 'dog', 'sat', 'ran', 'on', 'mat', 'was', 'who', 'x']
COUNT, UPDATES, LENGTH = 12, 5, 32
PART = ['--do_lower_case', '--learning_rate', 2e-2, '--train_batch_size', COUNT]


def sentence(length=6):
    return ' '.join(random.choices(WORDS, k=length))


def write_reviews(folder):
    for name in ('train', 'dev'):
        rows = (f'{sentence()} {WORDS[n % 2]}\t{n % 2}' for n in range(COUNT))
        (folder / f'{name}.tsv').write_text('\n'.join(['sentence\tlabel', *rows]) + '\n')


def write_scores(folder):
    for name in ('train', 'dev'):
        rows = (
            '\t'.join([str(n), *'abcdef', sentence(), sentence(), f'{random.random() * 5:.2f}'])
            for n in range(COUNT)
        )
        head = '\t'.join(['index', *'abcdef', 'sentence1', 'sentence2', 'score'])
        (folder / f'{name}.tsv').write_text('\n'.join([head, *rows]) + '\n')


def write_samples(folder):
    """What pregenerate_training_data.py writes, for each epoch."""
    for epoch in range(UPDATES):
        lines = []
        for number in range(COUNT):
            first, second = sentence(5).split(), sentence(4).split()
            tokens = ['[CLS]', *first, '[SEP]', *second, '[SEP]']
            at = sorted(random.sample([*range(1, 6), *range(7, 11)], 2))
            labels = [tokens[place] for place in at]
            tokens[at[0]] = '[MASK]'
            sample = {'tokens': tokens, 'segment_ids': [0] * 7 + [1] * 5}
            sample.update(is_random_next=number % 2, masked_lm_positions=at)
            lines.append(json.dumps({**sample, 'masked_lm_labels': labels}))
        (folder / f'epoch_{epoch}.json').write_text('\n'.join(lines) + '\n')
        metrics = {'num_training_examples': COUNT, 'max_seq_len': LENGTH}
        (folder / f'epoch_{epoch}_metrics.json').write_text(json.dumps(metrics))


CLASSIFIER = [
    *('--do_train', '--do_eval', '--data_dir', 'DATA'),
    *('--max_seq_length', LENGTH, '--eval_batch_size', COUNT),
]
#: example -> its data, class of the model, and flags
TRAININGS = {
    'run_classifier': (
        write_reviews,
        bert.BertForSequenceClassification,
        ['--task_name', 'SST-2', *CLASSIFIER],
    ),
    'run_classifier, numbers': (
        write_scores,
        bert.BertForSequenceClassification,
        ['--task_name', 'STS-B', *CLASSIFIER],
    ),
    'lm_finetuning/finetune_on_pregenerated': (
        write_samples,
        bert.BertForPreTraining,
        ['--pregenerated_data', 'DATA'],
    ),
}


@pytest.mark.parametrize('name', TRAININGS)
def test_losses_are_theirs(checkout, tmp_path, monkeypatch, name):
    write, block_class, flags = TRAININGS[name]
    example = name.partition(',')[0]
    random.seed(1)
    data = tmp_path / 'data'
    data.mkdir()
    write(data)
    labels = {'labels': ['score']} if 'numbers' in name else {}
    tiny.save_bert(
        tmp_path / 'model',
        WORDS,
        block_class,
        scale=0.4,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        format='pytorch_pretrained_bert',  # both open the files of theirs
        **labels,
    )
    epochs = '--epochs' if 'pregenerated' in example else '--num_train_epochs'
    flags = [str(flag).replace('DATA', str(data)) for flag in [*flags, *PART, epochs, UPDATES]]
    flags += ['--bert_model', str(tmp_path / 'model')]

    losses = []

    def backward(loss, *arguments, **options):
        losses.append(loss.item())
        return original(loss, *arguments, **options)

    original = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, 'backward', backward)
    monkeypatch.setattr(sys, 'argv', [example, *flags, '--output_dir', str(tmp_path / 'theirs')])
    for kind in (bool, int):  # the example takes them from NumPy
        monkeypatch.setattr(np, kind.__name__, kind, raising=False)
    path = checkout.parent / 'examples' / f'{example}.py'
    load_script(path.stem, path.parent).main()

    script = f'scripts/originals/pytorch_pretrained_bert/{path.stem}.py'
    flags += ['--output_dir', tmp_path / 'ours', '--log_interval', 1]
    assert run(main_of(script, ROOT), *flags) == 0
    ours = [record['loss'] for record in read_json(tmp_path / 'ours')['training']['log']]
    assert len(losses) == UPDATES and max(losses) - min(losses) > 1e-3  # it has learnt
    assert ours == pytest.approx(losses, abs=5e-4)
