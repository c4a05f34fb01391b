"""Of scripts that make samples of a text, or pre-train on them."""

import tiny
import toy_data
from script_runs import ROOT

from .case import named, with_rows

__all__ = ['TEXTS']

SOURCE = ROOT / 'tests' / 'fixtures' / 'pretraining'


def create(data, folder, edit):
    for name in ('sample_text.txt', 'vocab.txt'):
        (folder / name).write_bytes((SOURCE / name).read_bytes())
    argv = ['--input_file', 'sample_text.txt', '--output_dir', 'out', '--vocab', 'vocab.txt']
    return [*argv, '--max_length', '128', *edit.split()]


def pretrain(data, folder, edit):
    argv = ['--data', data / 'train-*.npz', '--data_eval', data / 'eval.npz', '--batch_size', '8']
    argv += ['--vocab_file', data / 'vocab.txt', '--num_steps', '2']
    return [*argv, *toy_data.PRETRAINED, '--output_dir', folder / 'out', *edit]


def write_corpus(folder):
    tiny.save_bert(folder / 'model', toy_data.FEW, num_hidden_layers=1)
    toy_data.write_counting(folder / 'text.txt', 40, 0)


def finetune(data, folder, edit):
    (folder / 'one.txt').write_text('w1 w2 w3\nw4 w5\n', 'utf-8')
    (folder / 'samples').mkdir()
    (folder / 'samples' / 'part.npz').write_bytes(b'PK')
    argv = ['--model', data / 'model', '--output_dir', folder / 'out', '--max_length', 24]
    argv += ['--max_predictions_per_seq', 4, '--train_batch_size', 16, '--num_workers', 0]
    return [*argv, *named(edit, TEXT=[data / 'text.txt'], MODEL=[data / 'model'])]


TEXTS = dict(
    with_rows(script, arguments, write=write)
    for script, arguments, write in (
        ('finetune_lm', finetune, write_corpus),
        ('create_pretraining_data', create, id),
        ('run_pretraining', pretrain, toy_data.write_shards),
    )
)
