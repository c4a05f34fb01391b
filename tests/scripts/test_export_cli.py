"""export/export.py as a command, with GluonNLP's flags; and its use as a module."""

import os
import subprocess

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, flatten, imported
from script_runs import ROOT, read_json, run_python

import bert
import export.export as module
from model_zoo.app import cli
from model_zoo.errors import CheckpointError, InputError, UnknownNameError, ZooError
from model_zoo.registry import get_family

CONFIG = {**tiny.BERT, 'vocab_size': 40, 'num_attention_heads': 4}


def make(name, **options):
    block = getattr(bert, name)(bert.BertConfig(**CONFIG), **options)
    block.initialize(mx.init.Normal(0.3))
    return block


@pytest.fixture
def small(monkeypatch):
    """The zoo's names mean small models."""
    fields = {name: value for name, value in CONFIG.items() if name != 'vocab_size'}
    for name in ('bert_12_768_12', 'bert_24_1024_16'):
        monkeypatch.setitem(get_family('bert').base.architectures, name, fields)


@pytest.fixture
def classifier(tmp_path):
    """A classifier with 3 labels, and the folder that its save_pretrained filled."""
    block = make('BertForSequenceClassification', num_labels=3)
    block.save_pretrained(str(tmp_path / 'model'))
    return block, str(tmp_path / 'model')


@pytest.fixture
def inputs():
    words = mx.nd.array(np.random.randint(0, 40, (3, 11)))
    return words, mx.nd.zeros_like(words), mx.nd.array([11, 4, 7])


def export_to(folder, *words, length=8):
    """Run the command in this process; it writes to the folder."""
    argv = [*words, '--output_dir', folder, '--seq_length', length]
    return module.main(list(map(str, argv)))


def test_command_from_another_folder(tmp_path, classifier, inputs):
    block, folder = classifier
    words = f'--task classification --model_name {folder} --output_dir out --seq_length 12'
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    command = [ROOT / 'export' / 'export.py', *words.split()]
    result = run_python(*command, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    files = 'classification-symbol.json', 'classification-0000.params'
    assert result.stdout.split() == [os.path.join('out', file) for file in files]
    assert_same(imported(tmp_path / 'out' / 'classification')(*inputs), block(*inputs))
    line = result.stderr.rpartition('next: ')[2]
    environment['PYTHONPATH'] = str(ROOT)
    subprocess.run(line, shell=True, check=True, cwd=tmp_path, env=environment)


def test_task_is_that_of_the_folder(tmp_path, classifier, capsys):
    assert not export_to(tmp_path, classifier[1], length=20)
    assert (tmp_path / 'classification-symbol.json').exists()
    with pytest.raises(SystemExit):
        export_to(tmp_path)
    assert '--task is required' in capsys.readouterr().err


TASKS = [
    ('classification', 'BertForSequenceClassification', {'num_labels': 3}, 'native'),
    ('regression', 'BertForSequenceClassification', {'num_labels': 1}, 'gluonnlp'),
    ('question_answering', 'BertForQuestionAnswering', {'use_pooler': True}, 'gluonnlp'),
    ('classification', 'BertForSequenceClassification', {'use_decoder': True}, 'gluonnlp'),
]


@pytest.mark.parametrize('task, name, options, form', TASKS)
def test_parameters_of_each_task(tmp_path, small, inputs, task, name, options, form):
    """The architecture is the model's name, the rest is found in the file."""
    block = make(name, **options)
    path = str(tmp_path / 'saved.params')
    block.save_parameters(path, format=form)
    out = tmp_path / 'out'
    words = '--task', task, '--model_parameters', path, '--dropout', 0.3
    export_to(out, *words, length=24)
    names = [f'{task}-0000.params', f'{task}-SHA256SUMS', f'{task}-symbol.json']
    assert sorted(os.listdir(out)) == names
    assert_same(imported(out / task)(*inputs), block(*inputs))
    nodes = read_json(out, f'{task}-symbol.json')['nodes']
    rates = {node['attrs']['p'] for node in nodes if node['op'] == 'Dropout'}
    assert ('0.3' in rates) == (task != 'question_answering')


def test_random_parameters(tmp_path, small, inputs, capsys, no_network):
    """Whose vocabulary is found in the cache."""
    with pytest.raises(ZooError):
        export_to(tmp_path / 'out', '--task', 'classification')
    folder = tmp_path / 'home' / 'models' / 'bert_12_768_12_book_corpus_wiki_en_uncased'
    folder.mkdir(parents=True)
    tiny.write_words(folder, map(str, range(35)))
    for task, outputs in [('classification', 2), ('regression', 1)]:
        export_to(tmp_path, '--task', task)
        assert imported(tmp_path / task)(*inputs).shape == (3, outputs)
    export_to(tmp_path, '--task', 'question_answering')
    assert len(imported(tmp_path / 'question_answering')(*inputs)) == 2
    words = ['--task', 'regression', '--seq_length', '8']
    assert cli.run(module.main, [*words, '--output_dir', str(tmp_path)]) == 0
    assert '--model_parameters is not given: the parameters' in capsys.readouterr().err


BAD_ARGUMENTS = [
    (UnknownNameError, ['--task', 'language_model']),
    (InputError, ['--seq_length', '25']),
    (CheckpointError, ['--task', 'question_answering']),
    # flags that don't go together
    (InputError, ['--precision', 'int8']),
    (InputError, ['--format', 'onnx', '--dtype', 'bfloat16']),
    (InputError, ['--normalize']),
]


@pytest.mark.parametrize('error, arguments', BAD_ARGUMENTS)
def test_bad_arguments(tmp_path, classifier, error, arguments):
    defaults = ['--task', 'classification', '--output_dir', str(tmp_path / 'out')]
    defaults += ['--model_name', classifier[1]]
    with pytest.raises(error):
        module.main(defaults + arguments)
    assert not (tmp_path / 'out').exists() or os.listdir(tmp_path / 'out') == []


OUTPUTS = [
    ('pretraining', 'BertForPreTraining', 2),
    ('sentence_embedding', 'BertModel', 1),
    ('multiple_choice', 'BertForMultipleChoice', 1),
]


@pytest.mark.parametrize('task, name, outputs', OUTPUTS)
def test_more_tasks_of_bert(tmp_path, inputs, task, name, outputs):
    block = make(name)
    block.save_pretrained(str(tmp_path / 'model'))
    export_to(tmp_path, tmp_path / 'model', '--task', task)
    if task == 'sentence_embedding':
        block = bert.BertSentenceEncoder(block)
    if task == 'multiple_choice':
        words = mx.nd.array(np.random.randint(0, 40, (2, 4, 7)))
        inputs = words, mx.nd.zeros_like(words), mx.nd.array(np.random.randint(1, 8, (2, 4)))
    made = imported(tmp_path / task)(*inputs)
    assert len(flatten(made)) == outputs
    assert_same(made, block(*inputs))
