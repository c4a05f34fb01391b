"""Of scripts that make vocabularies and samples of a text, or pre-train on them."""

import tiny
import toy_data
from script_runs import ROOT

from .case import BadInput, named

__all__ = ['TEXTS']

SOURCE = ROOT / 'tests' / 'fixtures' / 'pretraining'


def learn(data, folder, edit):
    (folder / 'blank.txt').write_text('\n \n')
    (folder / 'bad.txt').write_bytes(b'\xff\n')
    return ['--input_file', SOURCE / 'sample_text.txt', '--output_dir', 'out', *edit.split()]


LEARN = [
    ('--input_file none.txt', "error: no file matches 'none.txt'"),
    ('--vocab_size 5', '--vocab_size'),
    ('--vocab_size 60', '--vocab_size'),
    ('--min_frequency 0', '--min_frequency'),
    ('--max_sentences 9', '--max_sentences'),
    ('--input_file blank.txt', 'error: blank.txt: no text to learn a vocabulary from'),
    ('--input_file blank.txt --num_workers 1', 'no text to learn a vocabulary from'),
    ('--input_file bad.txt', 'error: bad.txt, line 1: the byte 0xff'),
    ('--kind sentencepiece --input_file blank.txt', 'error: blank.txt: no text to learn'),
    ('--kind sentencepiece --input_file bad.txt', 'error: bad.txt, line 1: the byte 0xff'),
    ('--kind sentencepiece --vocab_size 30', 'cannot learn 30 tokens .*: Vocabulary size'),
    ('--kind sentencepiece --vocab_size 9999', 'Vocabulary size too high .9999.'),
    ('--character_coverage 2', '--character_coverage'),
]


def create(data, folder, edit):
    for name in ('sample_text.txt', 'vocab.txt'):
        (folder / name).write_bytes((SOURCE / name).read_bytes())
    argv = ['--input_file', 'sample_text.txt', '--output_dir', 'out', '--vocab', 'vocab.txt']
    return [*argv, '--max_length', '128', *edit.split()]


CREATE = [
    ('--input_file none*.txt', "error: no file matches 'none\\*.txt'"),
    ('--max_predictions_per_seq 0', '--max_predictions_per_seq'),
    ('--vocab none.txt', '--vocab'),
    ('--sentencepiece none.model', '--sentencepiece'),
    ('--part_mb 0', '--part_mb'),
    ('--max_length 4', '--max_length'),
    ('--dupe_factor 0', '--dupe_factor'),
    ('--masked_lm_prob 0', '--masked_lm_prob'),
    ('--masked_lm_prob 1.5', '--masked_lm_prob'),
    ('--short_seq_prob=-0.1', '--short_seq_prob'),
    ('--num_workers 0', '--num_workers'),
    ('--num_outputs 0', '--num_outputs'),
    ('--input_file vocab.txt', 'error: vocab.txt: the corpus has only one document, and'),
    ('--vocab sample_text.txt', "error: vocabulary file 'sample_text.txt'"),
    ('--vocab book_corpus_wiki_en_cased', 'no vocabulary found for bert_12_768_12'),
]


def pretrain(data, folder, edit):
    argv = [
        '--data',
        data / 'train-*.npz',
        '--data_eval',
        data / 'eval.npz',
        '--vocab_file',
        data / 'vocab.txt',
        '--hparams',
        'num_layers=1,units=16,hidden_size=32,num_heads=2',
        'max_length=16',
        '--batch_size',
        '8',
        '--num_steps',
        '2',
    ]
    return [*argv, '--output_dir', folder / 'out', *edit]


PRETRAIN = [
    (['--gpus', '0'], '--gpus'),
    (['--gpus', 'a'], '--gpus'),
    (['--data', 'nothing*.npz'], "no file matches 'nothing"),
    (['--pretrained', '--data', 'nothing'], "no file matches 'nothing"),
    (['--optimizer', 'adamn'], "unknown optimizer 'adamn'"),
    (['--warmup_ratio', '1'], '--warmup_ratio'),
    (['--num_steps', '0'], '--num_steps'),
    (['--pretrained', '--from_scratch'], '--pretrained'),
    (['--phase1_num_steps', '3'], 'needs --phase2'),
    (['--raw', '--max_length', '99'], 'the model takes 16 tokens at most'),
    (['--vocab_file', 'missing.txt'], '--vocab_file'),
]


def write_corpus(folder):
    tiny.save_bert(folder / 'model', toy_data.FEW, num_hidden_layers=1)
    toy_data.write_counting(folder / 'text.txt', 40, 0)


def finetune(data, folder, edit):
    (folder / 'one.txt').write_text('w1 w2 w3\nw4 w5\n', 'utf-8')
    (folder / 'latin.txt').write_bytes(b'w1 w2\n\nw\xe9 w3\n')
    (folder / 'samples').mkdir()
    (folder / 'samples' / 'part.npz').write_bytes(b'PK')
    argv = ['--model', data / 'model', '--output_dir', folder / 'out', '--max_length', 24]
    argv += ['--max_predictions_per_seq', 4, '--train_batch_size', 16, '--num_workers', 0]
    return [*argv, *named(edit, TEXT=[data / 'text.txt'], MODEL=[data / 'model'])]


FINETUNE = [
    ([], 'give --train_file, a text, or --pregenerated_data'),
    (['--train_file', 'x', '--pregenerated_data', 'x'], 'give --train_file, a text, or'),
    (['--train_file', 'x', '--dev_file', 'x', '--dev_data', 'x'], 'and --dev_data exclude'),
    (['--train_file', 'x', '--early_stop', '1'], '--early_stop'),
    (['--train_file', 'x', '--epochs', '0'], '--epochs'),
    (['--train_file', 'nothing'], '--train_file'),
    (['--train_file', 'one.txt'], 'only one document'),
    (['--train_file', 'latin.txt'], 'latin.txt'),
    (['--train_file', 'TEXT', '--max_length', 99], 'the model takes 24 tokens at most'),
    (['--train_file', 'TEXT', '--num_workers', -1], '--num_workers must be at least 0, not -1'),
    (['--pregenerated_data', 'samples'], 'part.npz'),
    (['--pregenerated_data', 'MODEL'], 'no file matches'),
]

TEXTS = {
    'finetune_lm': BadInput('finetune_lm', finetune, FINETUNE, write=write_corpus),
    'learn_vocab': BadInput('learn_vocab', learn, LEARN),
    'create_pretraining_data': BadInput('create_pretraining_data', create, CREATE),
    'run_pretraining': BadInput('run_pretraining', pretrain, PRETRAIN, write=toy_data.write_shards),
}
