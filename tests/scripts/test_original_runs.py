"""The originals' published command lines at work, shortened, on tiny data and weights."""

import pathlib
import re
import shlex
import shutil

import pytest
from command_flags import main_of
from original_world import config, write_models, write_world
from test_original_commands import COMMANDS, ROOT, expand

from bert.catalogue import ARCHITECTURES
from model_zoo.app import cli
from model_zoo.app.originals import SCRIPTS

#: identity of a command -> why it isn't run
SKIPPED = {
    'ppb-0.6.2-23': 'asks for prompts: test_generate_gpt2.py types them',
    'gluonnlp-0.10-07': 'names eight GPUs and no data',
}
#: flags that can't be kept without a GPU or several processes -> whether they have a value
LEFT_OUT = {'--gpu': '[0-9]+', '--gpus': '.*', '--fp16': None, '--comm_backend': '.*'}
NUMBER = re.compile('[-0-9.e]+')
#: script -> what makes it short; --SQUAD and --GLUE name data that GluonNLP downloads
SHORT = {
    'finetune_classifier': '--training_steps 2 --max_len 12',
    'finetune_squad': '--training_steps 2 --max_seq_length 12 --max_query_length 4 --doc_stride 2',
    'finetune_swag': '--training_steps 2 --max_seq_length 12',
    'finetune_gpt': '--training_steps 2',
    'finetune_lm': '--training_steps 2 --max_seq_length 12 --max_predictions_per_seq 2',
    'eval_transfo_xl': '--tgt_len 8 --mem_len 8 --batch_size 2',
    'generate_gpt2': '--length 2',
    'create_pretraining_data': '--max_seq_length 12 --max_predictions_per_seq 2 --num_workers 1',
    'run_pretraining': '--num_steps 11 --max_seq_length 12 --max_predictions_per_seq 2',
    'extract_features': '--max_seq_length 12 --layers=-1,-2',
    'bert-embedding': '',
    'export': '',
}
#: script -> flag of its output, and what it leaves there (None: on standard output)
LEFT = {
    'finetune_classifier': ('--output_dir', 'results.json'),
    'finetune_squad': ('--output_dir', 'predictions.json'),
    'finetune_swag': ('--output_dir', 'results.json'),
    'finetune_gpt': ('--output_dir', 'results.json'),
    'finetune_lm': ('--output_dir', 'results.json'),
    'eval_transfo_xl': ('--work_dir', 'results.json'),
    'create_pretraining_data': ('--output_dir', 'part-000.npz'),
    'run_pretraining': ('--ckpt_dir', 'results.json'),
    'export': ('--output_dir', 'classification-symbol.json'),
}


def runnable():
    """The commands, each once: many are published several times, with other values."""
    seen = set()
    for command in COMMANDS:
        # test_zoo.py converts, and Pytorchic BERT's scripts have tests of their own
        elsewhere = re.search('/convert_|/pytorchic_bert/', command['runs_here'] or '')
        if command['accepted'] and command['id'] not in SKIPPED and not elsewhere:
            words = without_gpus(command['argv'])
            key = command['runs_here'], *(word for word in words if not NUMBER.fullmatch(word))
            if key not in seen:
                seen.add(key)
                yield pytest.param(command, id=command['id'])


@pytest.fixture(scope='module')
def world(tmp_path_factory, fixtures):
    """The folder in the place of /path/to; models by name are in ../root."""
    folder = tmp_path_factory.mktemp('originals')
    for name in ('root', 'world'):
        (folder / name).mkdir()
    write_models(folder / 'root')
    write_world(folder / 'world', fixtures)
    return folder / 'world'


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    """The current folder; the cache of weights is that of the world."""
    folder = tmp_path / 'here'
    shutil.copytree(world / 'here', folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv('MXNET_HOME', str(world.parent / 'root'))
    small = config().to_dict()
    del small['vocab_size']
    monkeypatch.setitem(ARCHITECTURES, 'bert_12_768_12', small)  # which an export takes its size of
    return folder


def script_of(command):
    """Name of our script that runs a command."""
    path = pathlib.Path(command['runs_here'])
    if 'originals' not in path.parts:
        return path.stem.replace('_hvd', '')
    return SCRIPTS[f'{path.parent.name}/{path.stem}'].ours


def without_gpus(words):
    """The words, but for what needs a GPU or another process."""
    words, kept = list(words), []
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition('=')
        if name in LEFT_OUT:
            value = LEFT_OUT[name]
            if value and not equals and words and re.fullmatch(value, words[0]):
                words.pop(0)
        elif word == '--dtype' and words[0] == 'float16':
            words.pop(0)
        else:
            kept.append(word)
    return kept


def short(command, world, here):
    """The arguments of a command, shortened, with the places of these tests."""
    script = script_of(command)
    words = without_gpus(expand(command['argv'], command['exports']))
    places = {
        '/tmp/': f'{here}/tmp/',
        '/path/to/output': f'{here}/output',
        '/path/to/saved': f'{world}/saved',
        '/path/to/': f'{world}/',
        'gs://some_bucket': f'{here}/bucket',
        '/datadrive/bert_data/': f'{world}/',
    }
    for old, new in places.items():
        words = [re.sub(f'(^|=){old}', rf'\g<1>{new}', word) for word in words]
    words += shlex.split(SHORT[script])
    names = {word.partition('=')[0] for word in words}
    if script == 'finetune_classifier' and '--data_dir' not in names:
        task = {'SST': 'SST-2'}.get(value_of(words, '--task_name'), value_of(words, '--task_name'))
        words += ['--data_dir', f'{world}/glue/{task}']
    if script == 'finetune_squad' and '--train_file' not in names:
        version = '2.0' if '--version_2' in names else '1.1'
        for flag, name in (('--train_file', 'train'), ('--predict_file', 'dev')):
            words += [flag, f'{world}/SQUAD/{name}-v{version}.json']
    return words


def value_of(words, *flags):
    """The last value of a flag among words, or None."""
    found = None
    for place, word in enumerate(words):
        name, equals, value = word.partition('=')
        if name in flags:
            found = value if equals else words[place + 1]
    return found


@pytest.mark.parametrize('command', runnable())
def test_command_runs(command, world, here, capsys):
    if command['runs_here'].endswith('_hvd.py'):
        pytest.importorskip('horovod.mxnet')
    words = short(command, world, here)
    script = script_of(command)
    assert cli.run(main_of(command['runs_here'], ROOT), words) == 0, capsys.readouterr().err
    assert_left(script, words, here, capsys.readouterr().out)


def assert_left(script, words, here, printed):
    output = value_of(words, '--output_file')
    if output is not None:
        assert pathlib.Path(output).stat().st_size > 100
    elif script in LEFT:
        flag, name = LEFT[script]
        folder = value_of(words, flag, '--output_dir') or './output_dir'
        if script == 'run_pretraining' and not {'--ckpt_dir', '--output_dir'} & set(words):
            folder = value_of(words, flag, '--output_dir') or './ckpt_dir'
        if script == 'create_pretraining_data' and '--epochs_to_generate' in words:
            name = 'epoch_0.json'  # pytorch-pretrained-bert's
        if not (pathlib.Path(folder) / name).exists():  # of a run that doesn't train
            name = 'calibration.json' if '--only_calibration' in words else 'inference.json'
        assert (pathlib.Path(folder) / name).exists(), sorted(pathlib.Path(folder).iterdir())
    else:
        assert len(printed) > 20


def test_googles_output_folder_is_gone_on_with(world, here, capsys):
    """As an Estimator does: see the page on Google's BERT."""
    main = main_of('scripts/originals/google/run_classifier.py', ROOT)
    model = world / 'bert' / 'uncased_L-12_H-768_A-12'
    words = [
        '--task_name=mrpc', f'--data_dir={world}/glue/MRPC', f'--vocab_file={model}/vocab.txt',
        f'--bert_config_file={model}/bert_config.json', '--output_dir=out', '--max_seq_length=12',
        f'--init_checkpoint={model}/bert_model.ckpt', '--use_tpu=True', '--tpu_name=a',
    ]  # fmt: skip
    assert cli.run(main, words) == 1
    assert 'nothing to do: give --do_train' in capsys.readouterr().err
    train = [*words, '--do_train=true', '--do_eval', '--do_predict', '--num_train_epochs=1.5',
             '--train_batch_size=2', '--learning_rate=1e-2']  # fmt: skip
    assert cli.run(main, train) == 0
    log = capsys.readouterr().err
    assert '--use_tpu has no effect: there is no TPU' in log and 'Step 6/6' in log
    predicted = pathlib.Path('out/test_results.tsv').read_text()
    assert len(predicted.splitlines()) == 4
    # again: there is nothing left to train
    pathlib.Path('out/test_results.tsv').unlink()
    assert cli.run(main, train) == 0
    log = capsys.readouterr().err
    assert 'resuming from' in log and 'Step 6/6' not in log
    assert pathlib.Path('out/test_results.tsv').read_text() == predicted
    # the trained model, not that of --init_checkpoint
    pathlib.Path('out/test_results.tsv').unlink()
    assert cli.run(main, [*words, '--do_predict=true']) == 0
    assert pathlib.Path('out/test_results.tsv').read_text() == predicted
