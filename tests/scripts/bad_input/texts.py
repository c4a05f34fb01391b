"""Of scripts that make samples of a text, or pre-train on them."""

import tiny
import toy_data
from script_runs import ROOT

from .case import BadInput, named

__all__ = ['TEXTS']

SOURCE = ROOT / 'tests' / 'fixtures' / 'pretraining'


def create(data, folder, edit):
    for name in ('sample_text.txt', 'vocab.txt'):
        (folder / name).write_bytes((SOURCE / name).read_bytes())
    argv = ['--input_file', 'sample_text.txt', '--output_dir', 'out', '--vocab', 'vocab.txt']
    return [*argv, '--max_length', '128', *edit.split()]


CREATE = [
    ('--input_file none*.txt', "error: no file matches 'none\\*.txt'"),
    ('--vocab none.txt', '--vocab'),
    ('--input_file vocab.txt', 'error: vocab.txt: next sentences need two documents'),
    ('--vocab book_corpus_wiki_en_cased', 'no vocabulary found for bert_12_768_12'),
]


def pretrain(data, folder, edit):
    argv = ['--data', data / 'train-*.npz', '--data_eval', data / 'eval.npz', '--batch_size', '8']
    argv += ['--vocab_file', data / 'vocab.txt', '--num_steps', '2', '--hparams', 'max_length=16']
    argv += ['num_layers=1,units=16,hidden_size=32,num_heads=2']
    return [*argv, '--output_dir', folder / 'out', *edit]


PRETRAIN = [
    (['--data', 'nothing*.npz'], "no file matches 'nothing"),
    (['--optimizer', 'adamn'], "unknown optimizer 'adamn'"),
    (['--pretrained', '--from_scratch'], '--pretrained'),
    (['--raw'], 'train-0.npz, from byte 0 on'),
    (['--vocab_file', 'missing.txt'], '--vocab_file'),
]


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


FINETUNE = [
    ([], 'give --train_file, a text, or --pregenerated_data'),
    (['--train_file', 'one.txt'], 'need two documents'),
    (['--pregenerated_data', 'samples'], 'part.npz'),
]

TEXTS = {
    'finetune_lm': BadInput('finetune_lm', finetune, FINETUNE, write=write_corpus),
    'create_pretraining_data': BadInput('create_pretraining_data', create, CREATE),
    'run_pretraining': BadInput('run_pretraining', pretrain, PRETRAIN, write=toy_data.write_shards),
}
