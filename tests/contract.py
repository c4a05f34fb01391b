"""What all scripts that train keep to, as cases: a tiny task for each, and how it is begun."""

import contextlib
import dataclasses
import functools
import os
import signal
from collections.abc import Callable
from unittest import mock

import mxnet as mx
import pytest
import toy_data
from script_runs import load_script, run

SIZES = {
    'gpt': 'num_layers=1,units=32,num_heads=2,max_length=16,dropout=0',
    'gpt2': 'num_layers=1,units=32,num_heads=2,max_length=16,dropout=0',
    'transfo_xl': 'num_layers=1,units=32,embed_size=32,hidden_size=64,num_heads=2,head_size=16,'
    'div_val=2,dropout=0',
}
CUSTOM = '--task_name custom --text_columns text --label_column label'.split()
WINDOWS = '--max_length 40 --doc_stride 12 --max_query_length 10'.split()


def bert(data, size):
    """Flags of a small new model."""
    sizes = f'num_layers=1,units=32 hidden_size=64,num_heads=2,{size}'
    return f'--from_scratch --vocab_file {data}/vocab.txt --hparams {sizes}'.split()


def classifier(data, output, *more, task=None, test=True):
    names = ('train', 'dev', 'test') if test else ('train', 'dev')
    files = [word for name in names for word in (f'--{name}_file', f'{data}/{name}.tsv')]
    options = f'--batch_size 16 --lr 3e-3 --max_length 24 --log_interval 3 --output_dir {output}'
    options += ' --epochs 3'
    task = task or [*CUSTOM, *files]
    return list(map(str, [*task, *bert(data, 'max_length=40'), *options.split(), *more]))


def squad(data, output, *more, version=1):
    files = f'--train_file {data}/train-{version}.json --dev_file {data}/dev-{version}.json'
    options = f'--batch_size 16 --lr 5e-3 --log_interval 5 --epochs 4 --output_dir {output}'
    options = [*options.split(), *WINDOWS, *['--version_2'] * (version == 2)]
    return list(map(str, [*files.split(), *bert(data, 'max_length=48'), *options, *more]))


def swag(data, output, *more):
    options = '--learning_rate 4e-3 --train_batch_size 16 --max_length 32'
    words = f'--do_train --data_dir {data} {options} --output_dir {output}'
    return [*words.split(), *bert(data, 'max_length=40,dropout=0'), *more]


def tagging(data, output, *more):
    options = '--learning-rate 5e-3 --batch-size 16 --seq-len 24'
    words = f'--data_dir {data} {options} --output_dir {output}'
    return [*words.split(), *bert(data, 'max_length=64,dropout=0'), *more]


def sentences(data, output, *more):
    options = '--lr 5e-3 --batch_size 16 --max_length 12 --log_interval 5 --epochs 2'
    words = f'--data_dir {data} {options} --output_dir {output}'
    return [*words.split(), *bert(data, 'max_length=16,dropout=0'), *more]


def gpt(data, output, *more, evaluate=True):
    sizes = 'num_layers=1,units=32,num_heads=2,max_length=32,dropout=0'
    options = '--learning_rate 3e-3 --log_interval 5 --num_train_epochs 4 --lm_coef 0.5'
    words = f'--do_train --train_file {data}/train.csv {options} --output_dir {output} '
    words += f'--from_scratch --vocab_file {data}/vocab.json --hparams {sizes}'
    words += f' --do_eval --dev_file {data}/eval.csv' * evaluate
    return [*words.split(), *more]


def lm(data, output, family, *more):
    vocab = {
        'gpt': f'--vocab_file {data}',  # the folder
        'gpt2': '--learn_vocab 290',
        'transfo_xl': '--tgt_len 8 --mem_len 8',
    }
    words = f'--train_file {data}/train.txt --dev_file {data}/eval.txt --family {family} '
    words += f'--from_scratch --hparams {SIZES[family]} {vocab[family]} --output_dir {output} '
    words += '--lr 1e-2 --batch_size 4 --log_interval 10 --epochs 2'
    return [*words.split(), *more]


@dataclasses.dataclass(frozen=True)
class Case:
    """A script on a task that it learns.

    Parameters
    ----------
    script : str
    write : callable
        ``write(folder)`` writes the data.
    train : callable
        ``train(data, output) -> list``: the arguments of a training that learns.
    learnt : callable
        Whether the results on the dev set, a dict, say so.
    log : str
        Name of the log file.
    again : callable
        As `train`, of a shorter training that is interrupted.
    batch : int
        Number of the batch in which that happens.
    evaluate : callable
        ``evaluate(data, model, output) -> list``: the arguments of an evaluation of a model's
        folder on the dev set.
    refused : callable
        ``refused(data, folder) -> flags``: what contradicts the interrupted training.
    accumulate : int
        Batches in an update of that training.
    process : bool
        Whether it is a process of its own, which is started in scripts/.
    args : dict
        What its results say of its arguments.
    extras : tuple of str
        Optional libraries that it needs.
    translated : bool
        Whether the parameters of a folder have other names and forms than the block's.
    examined : bool
        Whether its results show the predictions that are most wrong.
    """

    script: str
    write: Callable
    train: Callable
    learnt: Callable
    log: str
    again: Callable
    batch: int
    evaluate: Callable
    refused: Callable
    accumulate: int = 1
    process: bool = False
    args: dict = dataclasses.field(default_factory=dict)
    extras: tuple[str, ...] = ()
    translated: bool = False
    examined: bool = True


def evaluate_classifier(data, model, output):
    words = f'--only_inference --dev_file {data}/dev.tsv --test_file {data}/test.tsv '
    words += f'--max_length 24 --model {model} --output_dir {output}'
    return [*CUSTOM, *words.split()]


def evaluate_squad(data, model, output):
    """With a folder's model, on version 2."""
    words = f'--only_predict --dev_file {data}/dev-2.json --version_2 --model {model}'
    return [*words.split(), *WINDOWS, '--output_dir', output]


def evaluate_sentences(data, model, output):
    words = f'--only_inference --dev_file {data}/dev.tsv --test_file {data}/test.tsv '
    return f'{words} --max_length 12 --model {model} --output_dir {output}'.split()


def evaluate_folder(data, model, output, *more):
    return ['--data_dir', data, '--model', model, '--output_dir', output, *more]


def other_situations(data, folder):
    for name in ('train.csv', 'val.csv'):
        (folder / name).write_bytes((data / 'val.csv').read_bytes())
    return ['--train_file', folder / 'train.csv']


def family(name):
    """A case of train_lm.py; interrupted in the middle of an epoch."""
    return Case(
        'train_lm',
        toy_data.write_texts,
        lambda data, output: lm(data, output, name),
        lambda dev: dev['perplexity'] < 10,
        'log_lm.txt',
        lambda data, output: lm(data, output, name, '--training_steps', 9),
        5,
        lambda data, model, output: (
            f'--model {model} --dev_file {data}/eval.txt --output_dir {output}'.split()
        ),
        lambda data, folder: ['--lr', '1e-3'],
        translated=name == 'transfo_xl',
        examined=False,
    )


_CASES = [
    Case(
        'finetune_classifier',
        toy_data.write_reviews,
        lambda data, output: classifier(data, output, '--tensorboard', output / 'events'),
        lambda dev: dev['accuracy'] >= 0.9,  # the majority has 0.6
        'log_custom.txt',
        lambda data, output: classifier(data, output, test=False),
        40,
        evaluate_classifier,
        lambda data, folder: ['--lr', '2e-2'],
        process=True,
        args={'lr': 3e-3},
        extras=('tensorboard',),
    ),
    Case(
        'finetune_squad',
        toy_data.write_questions,
        lambda data, output: squad(data, output, '--epochs', 8, version=2),
        lambda dev: dev['f1'] > 80,  # always no answer: 35
        'log_squad.txt',
        lambda data, output: squad(
            data, output, '--optimizer', 'adam', '--epochs', 2, '--accumulate', 2, '--batch_size', 8
        ),
        57,
        evaluate_squad,
        lambda data, folder: ['--doc_stride', '13'],
        accumulate=2,
        args={'epsilon': 1e-8},
    ),
    Case(
        'finetune_swag',
        toy_data.write_situations,
        lambda data, output: swag(data, output, '--do_eval', '--num_train_epochs', '4.0'),
        lambda dev: dev['accuracy'] >= 0.9,
        'log_swag.txt',
        lambda data, output: swag(data, output, '--epochs', 2, '--gradient_accumulation_steps', 2),
        13,
        lambda *places: evaluate_folder(*places, '--do_eval', '--max_length', 32),
        other_situations,
        accumulate=2,
        args={'batch_size': 8, 'accumulate': 2},
    ),
    Case(
        'finetune_tagging',
        toy_data.write_tagged,
        lambda data, output: tagging(data, output, '--num-epochs', '3'),
        lambda dev: dev['f1'] >= 0.95,
        'log_tagging.txt',
        lambda data, output: tagging(data, output, '--epochs', 2, '--accumulate', 2),
        13,
        lambda *places: evaluate_folder(*places, '--only_inference', '--max_length', 24),
        lambda data, folder: ['--lr', '1e-3'],
        accumulate=2,
    ),
    Case(
        'finetune_embedding',
        toy_data.write_sentences,
        lambda data, output: sentences(data, output, '--epochs', 4),
        lambda dev: dev['spearman'] >= 0.8,  # with two scores, its highest is 0.87
        'log_sentences.txt',
        lambda data, output: sentences(data, output, '--accumulate', 2, '--batch_size', 8),
        13,
        evaluate_sentences,
        lambda data, folder: ['--max_score', '10'],
        accumulate=2,
        args={'pooling': 'mean', 'loss': 'cosine'},
        translated=True,
        examined=False,
    ),
    Case(
        'finetune_gpt',
        toy_data.write_stories,
        gpt,
        lambda dev: dev['accuracy'] >= 0.9,
        'log_story_cloze.txt',
        lambda data, output: gpt(
            data, output, '--n_valid', 120, '--batch_size', 4, '--epochs', 2, evaluate=False
        ),
        13,
        lambda data, model, output: (
            f'--model_name {model} --do_eval --dev_file {data}/eval.csv --output_dir {output}'
        ).split(),
        lambda data, folder: ['--lm_coef', '0.9'],
    ),
]
#: name -> Case
CASES = {case.script: case for case in _CASES}
CASES.update((f'train_lm {name}', family(name)) for name in SIZES)


class Toy:
    """A case at work; what it makes is made once.

    Parameters
    ----------
    name : str
        One of `CASES`.
    folder : pathlib.Path
        Empty; its own.
    """

    def __init__(self, name, folder):
        self.name, self.case = name, CASES[name]
        self._folder = folder

    @functools.cached_property
    def script(self):
        return load_script(self.case.script)

    @functools.cached_property
    def data(self):
        return self._make('data', self.case.write)

    @functools.cached_property
    def trained(self):
        """The output of a training that learns."""
        return self._make('trained', lambda folder: self._run(self.case.train, folder))

    @functools.cached_property
    def whole(self):
        """The output of the training that nobody interrupts."""
        return self._make(
            'whole', lambda folder: self._run(self.case.again, folder, '--keep_state')
        )

    def _make(self, name, write):
        folder = self._folder / name
        folder.mkdir()
        write(folder)
        return folder

    def _run(self, arguments, output, *more):
        assert run(self.script, *arguments(self.data, output), *more) == 0


def interrupt(number):
    """A patch by which this process meets Ctrl-C in its `number`-th batch of training."""
    return _at_batch(number, lambda: os.kill(os.getpid(), signal.SIGINT))


class Killed(BaseException):
    """What nothing of the project catches, as it can't a process's end."""


@contextlib.contextmanager
def killed(number, tensor=mx.nd.NDArray):
    """The training in this context ends in its `number`-th batch, with nothing saved.

    `tensor` is the class whose ``backward`` it calls.
    """

    def end():
        raise Killed

    with _at_batch(number, end, tensor), pytest.raises(Killed):
        yield


def _at_batch(number, do, tensor=mx.nd.NDArray):
    backward, calls = tensor.backward, []

    def counting(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            do()
        return backward(self, *args, **kwargs)

    return mock.patch.object(tensor, 'backward', counting)
