"""Jobs that are killed before their operations on files, and what the next command makes."""

import os
import shutil

import pytest
import tiny_models
from contract import CASES
from killed_jobs import KILLED, in_fork
from script_runs import ROOT, assert_same_parameters, load_script, run

import bert
from model_zoo.util.reading import sha256_of

#: each such operation would take minutes
EVERY = int(os.environ.get('ZOO_TEST_KILLS', 11))


SHORT = '--batch_size 64 --epochs 1 --ckpt_interval 3'
#: script -> flags of a short training
JOBS = {
    'finetune_classifier': SHORT,
    'finetune_tagging': SHORT,
    'train_lm gpt2': '--ckpt_interval 4',
}


@pytest.mark.slow
@pytest.mark.parametrize('name', JOBS)
def test_a_training_that_is_killed_and_resumed_ends_the_same(name, tmp_path):
    case, flags = CASES[name], JOBS[name].split()
    data, whole = tmp_path / 'data', tmp_path / 'whole'
    data.mkdir()
    case.write(data)
    script = load_script(case.script)

    def train(folder, *more):
        return lambda: run(script, *case.again(data, folder), *flags, *more)

    status, count = in_fork(train(whole), whole)
    assert status == 0 and count > 20
    for number in range(1, count + 1, EVERY):
        folder = tmp_path / f'killed-{number}-of-{count}'
        assert in_fork(train(folder), folder, number)[0] == KILLED
        in_fork(train(folder, '--resume'), folder)  # which refuses a training that had ended
        for path in (*whole.glob('*.params'), *whole.glob('best_model/model.*')):
            assert_same_parameters(path, folder / path.relative_to(whole))
        names = {str(path.relative_to(folder)) for path in folder.rglob('*')}
        assert names == {str(path.relative_to(whole)) for path in whole.rglob('*')}
        shutil.rmtree(folder)


LABELS = {'old': ['a', 'b', 'c'], 'new': ['x', 'y']}
SOURCES = {'export': ROOT / 'export'}
#: job -> words of its command; models and texts are in a folder, and it writes to another
COMMANDS = {
    'export': 'export {model} --output_dir {to}/made --format both',
    'embedding': 'embed {model} --file {of}/texts --pooling mean --output {to}/x.npz --engine',
    'features': 'extract_features --model {model} --input_file {of}/texts --layers -1 '
    '--output_file {to}/x.jsonl',
    'conversion': 'convert_checkpoint {model} {to}/x.safetensors',
    'pretraining': 'create_pretraining_data --input_file {of}/texts --vocab {model}/vocab.txt '
    '--output_file {to}/x.tfrecord --max_seq_length 16 --dupe_factor 2 --num_workers 1',
}


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp('models')
    for name, labels in LABELS.items():
        tiny_models.save_bert(folder / name, bert.BertForSequenceClassification, labels)
    (folder / 'texts').write_text('the cat sleeps\na film\n\nthe cat\na cat\n' * 4)
    return folder


def commanded(line, models, folder, model='new'):
    """A job that runs a command, whose cache is in its folder."""
    name, *words = line.format(model=models / model, of=models, to=folder).split()

    def job():
        os.environ['MXNET_HOME'] = str(folder / 'home')
        return run(load_script(name, SOURCES.get(name, ROOT / 'scripts')), *words)

    folder.mkdir(exist_ok=True)
    return job


def sums(folder):
    """The names and checksums of files; OpenVINO's own have names and contents of their own."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob('*')}
    return {
        name: path.is_file() and sha256_of(path)
        for name, path in files.items()
        if 'openvino' not in name and not name.endswith('.lock')
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    'job, engine, first',
    [
        ('export', '', None),
        ('export', '', 'old'),
        ('embedding', 'onnxruntime', None),
        ('embedding', 'openvino', None),
        ('features', '', None),
        ('conversion', '', 'old'),
        ('pretraining', '', None),
    ],
)
def test_a_killed_job_that_runs_again_leaves_what_an_unbroken_one_does(
    job, engine, first, models, tmp_path
):
    """Over an older result, too; an export is the older one, or refused, or whole in between."""
    line = f'{COMMANDS[job]} {engine}'

    def work(folder):
        if first:
            assert in_fork(commanded(line, models, folder, first), folder)[0] == 0
        return commanded(line, models, folder)

    def answer(folder):
        line = 'predict {to}/made cat --all_scores --engine onnxruntime --output {to}.jsonl'
        status, _ = in_fork(commanded(line, models, folder), folder)
        return status == 0 and folder.with_suffix('.jsonl').read_text()

    whole, known = tmp_path / 'whole', {False}
    task = work(whole)
    if job == 'export' and first:
        known.add(answer(whole))
    status, count = in_fork(task, whole)
    assert status == 0 and count > 2
    expected = sums(whole)
    if job == 'export':
        known.add(answer(whole))
        assert len(known) == 2 + bool(first)
    for number in range(1, count + 1, EVERY):
        folder = tmp_path / f'killed-{number}-of-{count}'
        assert in_fork(work(folder), folder, number)[0] == KILLED
        if job == 'export':
            assert answer(folder) in known
        for path in folder.rglob('*'):
            os.utime(path, (1e9, 1e9))  # what may have a writer stays for a while
        assert in_fork(commanded(line, models, folder), folder)[0] == 0
        assert sums(folder) == expected
        shutil.rmtree(folder)
