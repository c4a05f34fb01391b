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


EMBED = 'embed {model} --file {of}/texts --pooling mean --output {to}/x.npz --engine'
EXPORT = 'export {model} --output_dir {to}/made --format both'
FEATURES = 'extract_features --model {model} --input_file {of}/texts --layers -1 --output_file'
SAMPLES = 'create_pretraining_data --input_file {of}/texts --vocab {model}/vocab.txt'
COMMANDS = {
    'first export': EXPORT,
    'another export': EXPORT,
    'first with ONNX Runtime': f'{EMBED} onnxruntime',
    'first with OpenVINO': f'{EMBED} openvino',
    'features': f'{FEATURES} {{to}}/x.jsonl',
    'conversion': 'convert_checkpoint {model} {to}/x.safetensors',
    'samples': f'{SAMPLES} --max_seq_length 16 --num_workers 1 --output_file {{to}}/x.tfrecord',
}


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp('models')
    for name, labels in {'old': 'abc', 'new': 'xy'}.items():
        tiny_models.save_bert(folder / name, bert.BertForSequenceClassification, [*labels])
    (folder / 'texts').write_text('the cat sleeps\na film\n\nthe cat\na cat\n' * 4)
    return folder


def command(line, models, folder, number=None, model='new'):
    """Run a command in a fork, with its cache in the folder."""
    name, *words = line.format(model=models / model, of=models, to=folder).split()

    def job():
        os.environ['MXNET_HOME'] = str(folder / 'home')
        return run(load_script(name, ROOT / ('export' if name == 'export' else 'scripts')), *words)

    return in_fork(job, folder, number)


def sums(folder):
    """The names and checksums of files; OpenVINO's own differ."""
    return {
        str(path.relative_to(folder)): path.is_file() and sha256_of(path)
        for path in folder.rglob('*')
        if 'openvino' not in str(path) and path.suffix != '.lock'
    }


@pytest.mark.slow
@pytest.mark.parametrize('job', COMMANDS)
def test_a_killed_job_that_runs_again_leaves_what_an_unbroken_one_does(job, models, tmp_path):
    """After each kill an export is the older one, or refused, or whole."""
    line, whole, older = COMMANDS[job], tmp_path / 'whole', tmp_path / 'older'

    def answer(folder):
        line = 'predict {to}/made cat --all_scores --engine onnxruntime --output {to}.jsonl'
        is_read = 'export' in job and command(line, models, folder)[0] == 0
        return is_read and folder.with_suffix('.jsonl').read_text()

    older.mkdir()
    assert 'first' in job or command(line, models, older, model='old')[0] == 0
    shutil.copytree(older, whole)
    status, count = command(line, models, whole)
    assert status == 0 and count > 2
    expected, known = sums(whole), {False, answer(older), answer(whole)}
    for number in range(count - 1, 0, -3 * EVERY):
        folder = tmp_path / f'killed-{number}-of-{count}'
        shutil.copytree(older, folder)
        assert command(line, models, folder, number)[0] == KILLED
        assert answer(folder) in known
        for path in folder.rglob('*'):
            os.utime(path, (1e9, 1e9))  # what may have a writer stays for a while
        assert command(line, models, folder)[0] == 0
        assert sums(folder) == expected
        shutil.rmtree(folder)
