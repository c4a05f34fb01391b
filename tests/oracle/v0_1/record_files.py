"""Write what the commands of version 0.1 wrote: data/, runs/ and their list, runs.json.

    python record_files.py CHECKOUT OUTPUT

A run has the command line, which is to be given in a folder that has ``data`` and ``runs``; its
``start``, the output folder before the command, where there is something in it, such as what an
interrupted run has left; and its ``end``, what the command has written there.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from unittest import mock

from command_flags import COMMAND, main_of, write_records
from made_up_data import write_data

import model_zoo  # noqa: F401  isort: skip
import mxnet as mx
import record_blocks

from model_zoo import cli
from model_zoo.training import PartialOutput

OUTPUT = 'output'
#: of an output folder, what isn't kept: pictures, logs, what is there a second time
_PICTURES = ('*.png', 'log_*.txt', 'events*', 'log.txt')
_AGAIN = (*_PICTURES, 'checkpoints', 'model_*.params', 'cache', 'vocab', 'spiece.model')
BERT = '--hparams num_layers=1,units=8,hidden_size=16,num_heads=2,max_length=32,dropout=0'
WIDER = '--hparams num_layers=2,units=12,hidden_size=24,num_heads=2,max_length=32,dropout=0'
GPT = '--hparams num_layers=2,units=8,num_heads=2,max_length=32,dropout=0'
TRANSFO_XL = (
    '--hparams num_layers=2,units=8,embed_size=8,hidden_size=16,num_heads=2,head_size=4,'
    'div_val=2,dropout=0 --cutoffs 8 14 --tgt_len 8 --mem_len 8'
)
#: small steps: what rounding alone moves stays far below the tests' tolerance
RATE = '--lr 1e-4 --epsilon 1e-6 --log_interval 1 --keep_checkpoints 1'
SCRATCH = f'--from_scratch --vocab_file data/vocab.txt {RATE}'
SENTENCES = (
    '--task_name custom --text_columns text --label_column label '
    '--train_file data/sentences/train.tsv --dev_file data/sentences/dev.tsv '
    '--test_file data/sentences/test.tsv'
)
CLASSIFIER = 'runs/finetune_classifier/end/best_model'
TEXT = '--train_file data/text/train.txt --eval_file data/text/eval.txt'

#: name -> script, flags, and the update before which the first run was interrupted
TRAININGS = {
    'finetune_classifier': (
        'finetune_classifier',
        f'{SENTENCES} {SCRATCH} {WIDER} --batch_size 8 --max_len 16 --epochs 2 '
        '--output_dir output',
        8,
    ),
    'finetune_squad': (
        'finetune_squad',
        '--train_file data/squad/train.json --predict_file data/squad/dev.json --version_2 '
        f'{SCRATCH} {BERT} --batch_size 8 --max_seq_length 24 --doc_stride 8 --max_query_length 8 '
        '--epochs 2 --optimizer bertadam --n_best_size 3 --output_dir output',
        4,
    ),
    'finetune_swag': (
        'finetune_swag',
        f'--do_train --do_eval --data_dir data/swag {SCRATCH} {BERT} --train_batch_size 8 '
        '--gradient_accumulation_steps 2 --max_seq_length 24 --num_train_epochs 2 '
        '--output_dir output',
        2,
    ),
    'finetune_tagging': (
        'finetune_tagging',
        f'--data_dir data/tagging {SCRATCH} {BERT} --batch-size 8 --seq-len 16 --num-epochs 2 '
        '--output_dir output',
        4,
    ),
    'finetune_gpt': (
        'finetune_gpt',
        '--do_train --do_eval --train_dataset data/stories/train.csv '
        '--eval_dataset data/stories/eval.csv --from_scratch --vocab_file data/gpt/vocab.json '
        f'{RATE} {GPT.replace("max_length=32", "max_length=64")} --train_batch_size 4 '
        '--num_train_epochs 2 --output_dir output',
        3,
    ),
    'finetune_lm': (
        'finetune_lm',
        '--train_corpus data/text/documents.txt --dev_corpus data/text/documents.txt '
        f'{SCRATCH} {BERT} --max_seq_length 24 --max_predictions_per_seq 3 --batch_size 8 '
        '--num_workers 0 --epochs 2 --output_dir output',
        3,
    ),
    'run_pretraining': (
        'run_pretraining',
        "--data 'runs/create_pretraining_data/end/*.npz' "
        "--data_eval 'runs/create_pretraining_data/end/part-000.npz' --num_buckets 2 "
        f'{SCRATCH} {WIDER} --batch_size 4 --accumulate 2 --num_steps 9 --eval_interval 3 '
        '--optimizer lamb --ckpt_dir output',
        5,
    ),
    'run_pretraining_raw': (
        'run_pretraining',
        "--raw --data data/text/documents.txt --max_seq_length 24 --max_predictions_per_seq 3 "
        f'{SCRATCH} {BERT} --batch_size 8 --num_steps 6 --num_dataset_workers 1 --ckpt_dir output',
        4,
    ),
    'train_lm_gpt2': (
        'train_lm',
        f'--family gpt2 {TEXT} --from_scratch --learn_vocab 280 {RATE} {GPT} --batch_size 4 '
        '--epochs 1 --training_steps 9 --output_dir output',
        5,
    ),
    'train_lm_gpt': (
        'train_lm',
        f'--family gpt {TEXT} --from_scratch --vocab_file data/gpt/vocab.json {RATE} {GPT} '
        '--batch_size 4 --training_steps 6 --output_dir output',
        4,
    ),
    'train_lm_transfo_xl': (
        'train_lm',
        f'--family transfo_xl {TEXT} --from_scratch {RATE} {TRANSFO_XL} --batch_size 4 '
        '--training_steps 9 --output_dir output',
        6,
    ),
}  # fmt: skip

#: name -> command, its flags; these compute the same each time
RUNS = {
    'create_pretraining_data': (
        'scripts/create_pretraining_data.py',
        '--input_file data/text/documents.txt --output_dir output --vocab data/vocab.txt '
        '--max_seq_length 24 --max_predictions_per_seq 3 --dupe_factor 2 --num_outputs 2 '
        '--num_workers 1',
    ),
    'learn_wordpiece': (
        'scripts/learn_vocab.py',
        '--input_file data/text/train.txt --output_dir output --vocab_size 60',
    ),
    'learn_sentencepiece': (
        'scripts/learn_vocab.py',
        '--input_file data/text/train.txt --output_dir output --vocab_size 40 --kind sentencepiece',
    ),
    'classifier_inference': (
        'scripts/finetune_classifier.py',
        f'{SENTENCES} --only_inference --bert_model {CLASSIFIER} --max_len 16 --output_dir output',
    ),
    'classifier_predict': (
        'scripts/finetune_classifier.py',
        '--task_name custom --text_columns text --test_file data/sentences/test.tsv --do_predict '
        f'--bert_model {CLASSIFIER} --max_len 16 --output_dir output',
    ),
    'export': (
        'export/export.py',
        f'--task classification --model_name {CLASSIFIER} --seq_length 16 --output_dir output',
    ),
    'classifier_deployed': (
        'scripts/finetune_classifier.py',
        f'{SENTENCES} --only_inference --deploy --model_prefix runs/export/end/classification '
        '--vocab_file data/vocab.txt --max_len 16 --output_dir output',
    ),
    'squad_inference': (
        'scripts/finetune_squad.py',
        '--predict_file data/squad/dev.json --version_2 --only_predict --max_seq_length 24 '
        '--doc_stride 8 --max_query_length 8 --n_best_size 3 --output_dir output '
        '--bert_model runs/finetune_squad/end/best_model',
    ),
    'pretraining_evaluation': (
        'scripts/run_pretraining.py',
        "--data_eval 'runs/create_pretraining_data/end/*.npz' --ckpt_dir output "
        '--model runs/run_pretraining/end/model',
    ),
    'perplexity_gpt2': (
        'scripts/train_lm.py',
        '--model runs/train_lm_gpt2/end/best_model --eval_file data/text/eval.txt '
        '--output_dir output',
    ),
    'eval_transfo_xl': (
        'scripts/eval_transfo_xl.py',
        '--model_name runs/train_lm_transfo_xl/end/best_model --text_file data/text/eval.txt '
        '--batch_size 2 --tgt_len 5 --mem_len 7 --work_dir output',
    ),
    'generate_greedy': (
        'scripts/generate_gpt2.py',
        '--model_name_or_path runs/train_lm_gpt2/end/best_model --prompt "the old" "claw" '
        '--length 6 --greedy --output output/texts.json',
    ),
    'generate_drawn': (
        'scripts/generate_gpt2.py',
        '--model_name_or_path runs/train_lm_gpt2/end/best_model --prompt "the old" --nsamples 3 '
        '--length 6 --top_k 9 --top_p 0.9 --seed 5 --output output/texts.json',
    ),
    'generate_beams': (
        'scripts/generate_gpt2.py',
        '--model_name_or_path runs/train_lm_transfo_xl/end/best_model --prompt "the old" '
        '--length 5 --num_beams 3 --output output/texts.json',
    ),
    'embedding_words': (
        COMMAND,
        f'--file data/text/lines.txt --model {CLASSIFIER} --oov_way sum '
        '--output output/vectors.npz',
    ),
    'embedding_sentences': (
        COMMAND,
        f'--file data/text/lines.txt --model {CLASSIFIER} --pooling mean --normalize '
        '--output output/vectors.jsonl',
    ),
    'extract_features': (
        'scripts/extract_features.py',
        f'--input_file data/text/lines.txt --output_file output/features.jsonl --bert_model '
        f'{CLASSIFIER} --layers=-1,0 --max_seq_length 16 --batch_size 1',
    ),
    'extract_arrays': (
        'scripts/extract_features.py',
        f'--input_file data/text/lines.txt --output_file output/features.npz --bert_model '
        f'{CLASSIFIER} --layers=-2 --max_seq_length 16',
    ),
    'bertology': (
        'scripts/bertology.py',
        f'--model {CLASSIFIER} --task_name SST --data_dir data/glue --max_seq_length 16 '
        '--try_masking --masking_threshold 0.5 --output_dir output',
    ),
    'bertology_gpt2': (
        'scripts/bertology.py',
        '--model runs/train_lm_gpt2/end/best_model --eval_file data/text/eval.txt '
        '--block_size 16 --output_dir output',
    ),
    'convert_huggingface': (
        'scripts/convert_checkpoint.py',
        f'--family bert --to huggingface {CLASSIFIER} output',
    ),
    'convert_gluonnlp': (
        'scripts/convert_checkpoint.py',
        '--family bert --to gluonnlp runs/finetune_squad/end/best_model output',
    ),
    'convert_numpy': (
        'scripts/convert_checkpoint.py',
        '--family gpt --to numpy runs/train_lm_gpt/end/best_model output',
    ),
    'convert_gpt2': (
        'scripts/convert_checkpoint.py',
        '--family gpt2 --to huggingface runs/train_lm_gpt2/end/best_model output',
    ),
    'convert_transfo_xl': (
        'scripts/convert_checkpoint.py',
        '--family transfo_xl --to huggingface runs/train_lm_transfo_xl/end/best_model output',
    ),
}  # fmt: skip
#: of these a first run is interrupted behind so many records
PARTIAL = {'extract_features': 2, 'bertology': 3}


class Recorder:
    """Runs commands of the checkout in the current folder and keeps what they write.

    Parameters
    ----------
    root, runs : pathlib.Path
        The checkout, and where to keep it.
    """

    def __init__(self, root, runs):
        self._root, self._runs = root, runs
        self.records, self.keys = {}, {}

    def record(self, name, command, line, interrupt=None):
        """Run a command, and before it one that `interrupt`, a context, ends."""
        argv = split(line)
        start = self._runs / name / 'start'
        with prepared(self._root, command) as main:
            os.makedirs(OUTPUT)
            if interrupt is not None:
                with interrupt:
                    status = cli.run(main, argv)
                assert status == 130, (name, status)
                keep(pathlib.Path(OUTPUT), start, _PICTURES)
                shutil.rmtree(OUTPUT)
                os.makedirs(OUTPUT)
            with counted(mx.gluon.Trainer, '_update') as updates:
                status = cli.run(main, argv)
            assert status == 0, (name, status)
        files = [path for path in pathlib.Path(OUTPUT).rglob('*') if path.is_file()]
        keep(pathlib.Path(OUTPUT), self._runs / name / 'end', _AGAIN)
        done = max(map(step_of, start.glob('checkpoints/step-*')), default=0)
        self.records[name] = {
            'command': command,
            'updates': len(updates) - done,  # of the optimizer, after the interruption
            'argv': [*argv, '--resume'] if interrupt is not None else argv,
            'files': sorted(path.relative_to(OUTPUT).as_posix() for path in files),
        }
        self.keys[name] = {
            path.relative_to(OUTPUT).as_posix(): keys_of_file(path)
            for path in sorted(files)
            if has_keys(path)
        }
        shutil.rmtree(OUTPUT)


def split(line):
    """A command line as its words; quotes hold some together, and nothing else is special."""
    words = line.split('"')
    plain, quoted = words[::2], words[1::2]
    argv = plain[0].replace("'", '').split()
    for quote, rest in zip(quoted, plain[1:]):
        argv += [quote, *rest.replace("'", '').split()]
    return argv


@contextlib.contextmanager
def prepared(root, command):
    """The main function of a command, with fixed seeds."""
    mx.random.seed(7)
    yield main_of(command, root)


def step_of(checkpoint):
    return int(checkpoint.name.split('-')[1])


@contextlib.contextmanager
def counted(owner, method):
    """The calls of a method: a list with an element for each."""
    original, calls = getattr(owner, method), []

    def counting(self, *args, **kwargs):
        calls.append(1)
        return original(self, *args, **kwargs)

    with mock.patch.object(owner, method, counting):
        yield calls


@contextlib.contextmanager
def interrupted(owner, method, calls):
    """Press Ctrl-C in call number `calls` of a method."""
    original, count = getattr(owner, method), []

    def counting(self, *args, **kwargs):
        count.append(1)
        if len(count) == calls:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, *args, **kwargs)

    with mock.patch.object(owner, method, counting):
        yield


def keep(source, target, without):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*without, 'lock'))


def has_keys(path):
    """Whether a file is JSON whose keys are names, not those of samples or tokens."""
    names = ('results.json', 'inference.json', 'evaluation.json', 'config.json', 'state.json')
    return path.name in (*names, 'learn_vocab.json', 'texts.json')


def keys_of_file(path):
    keys = keys_of(json.loads(path.read_text('utf-8')))
    if path.name == 'state.json':
        keys['config'] = {}  # its flags are compared when the training is resumed
    return keys


def keys_of(value):
    """The keys of plain JSON, each with the keys below it; those of a list's elements together."""
    if isinstance(value, dict):
        return {key: keys_of(each) for key, each in value.items()}
    found = {}
    for each in value if isinstance(value, list) else ():
        found.update(keys_of(each))
    return found


def record_all(root, output):
    data, runs = output / 'data', output / 'runs'
    for folder in (data, runs, output / 'blocks'):
        shutil.rmtree(folder, ignore_errors=True)
    write_data(data)
    runs.mkdir()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.symlink(data, 'data')
        os.symlink(runs, 'runs')
        recorder = Recorder(root, runs)
        first = 'create_pretraining_data'
        recorder.record(first, *RUNS[first])
        for name, (script, line, update) in TRAININGS.items():
            stop = interrupted(mx.gluon.Trainer, 'update', update)
            recorder.record(name, f'scripts/{script}.py', line, stop)
        for name, (command, line) in RUNS.items():
            if name == first:
                continue
            stop = None
            if name in PARTIAL:
                stop = interrupted(PartialOutput, 'append', PARTIAL[name])
            recorder.record(name, command, line, stop)
        record_blocks.record_all(output / 'blocks', runs)
        os.chdir(root)
    write_records(output / 'runs.json', recorder.records, depth=2)
    write_records(output / 'results_keys.json', recorder.keys, depth=2)


if __name__ == '__main__':
    record_all(*map(pathlib.Path, sys.argv[1:]))
