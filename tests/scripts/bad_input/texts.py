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
    ('--vocab_size 5', 'error: --vocab_size 5: the special tokens are 5 already'),
    ('--vocab_size 60', 'error: --vocab_size 60 is too small: the characters of the text alon'),
    ('--min_frequency 0', 'error: --min_frequency 0: give 1 or more'),
    ('--max_sentences 9', 'error: --max_sentences 9: give 101 or more'),
    ('--input_file blank.txt', 'error: blank.txt: no text to learn a vocabulary from'),
    ('--input_file blank.txt --num_workers 1', 'no text to learn a vocabulary from'),
    ('--input_file bad.txt', 'error: bad.txt, line 1: byte 0xff'),
    ('--kind sentencepiece --input_file blank.txt', 'error: blank.txt: no text to learn'),
    ('--kind sentencepiece --input_file bad.txt', 'error: bad.txt, line 1: byte 0xff'),
    ('--kind sentencepiece --vocab_size 30', 'cannot learn 30 tokens .*: Vocabulary size'),
    ('--kind sentencepiece --vocab_size 9999', 'Vocabulary size too high .9999.'),
    ('--character_coverage 2', 'error: --character_coverage 2.0: give a number above 0'),
]


def create(data, folder, edit):
    for name in ('sample_text.txt', 'vocab.txt'):
        (folder / name).write_bytes((SOURCE / name).read_bytes())
    argv = ['--input_file', 'sample_text.txt', '--output_dir', 'out', '--vocab', 'vocab.txt']
    return [*argv, '--max_seq_length', '128', *edit.split()]


CREATE = [
    ('--input_file none*.txt', "error: no file matches 'none\\*.txt'"),
    ('--max_predictions_per_seq 0', 'error: --max_predictions_per_seq 0: give 1 or more'),
    ('--vocab none.txt', "error: --vocab 'none.txt' is neither a file nor a data set"),
    ('--sentencepiece none.model', "error: --sentencepiece 'none.model': no such file"),
    ('--part_mb 0', 'error: --part_mb 0.0: give a number above 0'),
    ('--max_seq_length 4', 'error: --max_seq_length 4: give 5 or more'),
    ('--dupe_factor 0', 'error: --dupe_factor 0: give 1 or more'),
    ('--masked_lm_prob 0', 'error: --masked_lm_prob 0.0: give a number above 0 to 1'),
    ('--masked_lm_prob 1.5', 'error: --masked_lm_prob 1.5: give a number above 0 to 1'),
    ('--short_seq_prob=-0.1', 'error: --short_seq_prob -0.1: give a number from 0 to 1'),
    ('--num_workers 0', 'error: --num_workers 0: give 1 or more'),
    ('--num_outputs 0', 'error: --num_outputs 0: give 1 or more'),
    ('--input_file vocab.txt', 'error: vocab.txt: the corpus has only one document, and'),
    ('--vocab sample_text.txt', "error: vocabulary file 'sample_text.txt'"),
    ('--vocab book_corpus_wiki_en_cased', 'no vocabulary found for bert_12_768_12'),
]


def pretrain(data, folder, edit):
    argv = ['--data', data / 'train-*.npz', '--data_eval', data / 'eval.npz', '--vocab_file',
            data / 'vocab.txt', '--hparams', 'num_layers=1,units=16,hidden_size=32,num_heads=2',
            'max_length=16', '--batch_size', '8', '--num_steps', '2']  # fmt: skip
    return [*argv, '--ckpt_dir', folder / 'out', *edit]


PRETRAIN = [
    (['--gpus', '0'], '--gpus 0: '),
    (['--gpus', 'a'], "--gpus 'a': give numbers"),
    (['--data', 'nothing*.npz'], "no file matches 'nothing"),
    (['--pretrained', '--data', 'nothing'], "no file matches 'nothing"),
    (['--optimizer', 'adamn'], "unknown optimizer 'adamn'"),
    (['--warmup_ratio', '1'], '--warmup_ratio 1.0: give a number from 0 to below 1'),
    (['--num_steps', '0'], '--num_steps 0: give 1 or more'),
    (['--pretrained', '--from_scratch'], '--pretrained and --from_scratch exclude'),
    (['--phase1_num_steps', '3'], 'needs --phase2'),
    (['--raw', '--max_seq_length', '99'], 'the model takes 16 tokens at most'),
    (['--vocab_file', 'missing.txt'], "--vocab_file 'missing.txt': no such file"),
]



def write_corpus(folder):
    tiny.save_bert(folder / 'model', toy_data.FEW, num_hidden_layers=1)
    toy_data.write_counting(folder / 'text.txt', 40, 0)


def finetune(data, folder, edit):
    (folder / 'one.txt').write_text('w1 w2 w3\nw4 w5\n', 'utf-8')
    (folder / 'latin.txt').write_bytes(b'w1 w2\n\nw\xe9 w3\n')
    (folder / 'samples').mkdir()
    (folder / 'samples' / 'part.npz').write_bytes(b'PK')
    argv = ['--bert_model', data / 'model', '--output_dir', folder / 'out', '--max_seq_length', 24]
    argv += ['--max_predictions_per_seq', 4, '--train_batch_size', 16, '--num_workers', 0]
    return [*argv, *named(edit, TEXT=[data / 'text.txt'], MODEL=[data / 'model'])]


FINETUNE = [
    ([], 'give --train_corpus, a text, or --pregenerated_data'),
    (['--train_corpus', 'x', '--pregenerated_data', 'x'], 'give --train_corpus, a text, or'),
    (['--train_corpus', 'x', '--dev_corpus', 'x', '--dev_data', 'x'], 'and --dev_data exclude'),
    (['--train_corpus', 'x', '--early_stop', '1'], '--early_stop needs --dev_corpus'),
    (['--train_corpus', 'x', '--epochs', '0'], '--epochs 0'),
    (['--train_corpus', 'nothing'], '--train_corpus: no file matches'),
    (['--train_corpus', 'one.txt'], 'only one document'),
    (['--train_corpus', 'latin.txt'], 'latin.txt'),
    (['--train_corpus', 'TEXT', '--max_seq_length', 99], 'the model takes 24 tokens at most'),
    (['--train_corpus', 'TEXT', '--num_workers', -1], 'num_workers -1'),
    (['--pregenerated_data', 'samples'], 'part.npz'),
    (['--pregenerated_data', 'MODEL'], 'no file matches'),
]

TEXTS = {
    'finetune_lm': BadInput('finetune_lm', finetune, FINETUNE, write=write_corpus),
    'learn_vocab': BadInput('learn_vocab', learn, LEARN),
    'create_pretraining_data': BadInput('create_pretraining_data', create, CREATE),
    'run_pretraining': BadInput(
        'run_pretraining', pretrain, PRETRAIN, write=toy_data.write_shards
    ),
}
