"""The command ``zoo``, and the converters that pytorch-pretrained-bert installs."""

import pathlib

import pytest
from arrays import assert_equal, tensors_of
from command_flags import command_names
from script_runs import ROOT, load_script, refusal, run

from model_zoo.app.originals import CONVERTERS, SCRIPTS
from model_zoo.checkpoint import read_tensors
from model_zoo.opening import open_model


@pytest.fixture(scope='module')
def zoo():
    return load_script('zoo')


def test_every_script_is_a_command(zoo):
    commands = zoo.list_commands()
    files = {path for path in commands.values() if isinstance(path, pathlib.Path)}
    for name in command_names(ROOT):
        if name.startswith('scripts/') and name.count('/') == 1:
            assert ROOT / name in files, name
    assert set(SCRIPTS) | set(CONVERTERS) <= set(commands)


def test_help(zoo, capsys):
    assert run(zoo, '--help-all') == 0
    printed = capsys.readouterr().out
    assert all(f'  {name} ' in printed for name in zoo.list_commands())
    assert run(zoo, '--help') == 0
    printed = capsys.readouterr().out
    commands = [name for group in zoo.USUAL.values() for name in group]
    assert len(set(commands)) == len(commands) < 20
    assert all(f'  {name} ' in printed for name in commands)
    assert len(printed.splitlines()) < 40 and 'zoo --help-all' in printed
    assert 'google' in printed and 'eval-transfo-xl' not in printed


NAMES = [
    ('info', 'info'),
    ('train_lm', 'train-lm'),
    ('google/run_squad', 'google run_squad'),
    ('google run_squad', 'google run_squad'),
]


@pytest.mark.parametrize('words, shown', NAMES)
def test_commands_run_under_their_names(zoo, words, shown, capsys):
    with pytest.raises(SystemExit) as stop:
        run(zoo, *words.split(), '--help')
    assert stop.value.code == 0
    assert f'usage: zoo {shown}' in capsys.readouterr().out


def test_a_mistyped_command(zoo, capsys):
    said = refusal(capsys, zoo, 'finetune_clasifier')
    assert 'did you mean finetune-classifier? zoo --help-all lists all' in said


# converter -> the checkpoint's folder, its name there, and the configuration
CASES = {
    'convert_tf_checkpoint_to_pytorch': ('bert_tensorflow', 'bert_model.ckpt', 'bert_config.json'),
    'convert_openai_checkpoint': ('gpt_numpy', '', 'config.json'),
    'convert_transfo_xl_checkpoint': ('transfo_xl_tensorflow', 'model.ckpt', 'config.json'),
    'convert_gpt2_checkpoint': ('gpt2_tensorflow', 'model.ckpt', 'hparams.json'),
}


@pytest.mark.parametrize('name', CASES)
@pytest.mark.parametrize('has_config', [True, False])
def test_converters(zoo, name, has_config, fixtures, tmp_path, capsys):
    """Their arguments by position; into a format that needs no torch."""
    folder, checkpoint, config = CASES[name]
    folder, output = fixtures / 'checkpoints' / folder, tmp_path / 'out' / 'model.safetensors'
    if name == 'convert_tf_checkpoint_to_pytorch':
        if not has_config:
            pytest.skip('it wants the configuration')
        words = [folder / checkpoint, folder / config, output]
    else:
        words = [folder / checkpoint, output, *([folder / config] if has_config else [])]
    assert run(zoo, name, *words) == 0, capsys.readouterr().err
    _, source, _, family, _, model = CONVERTERS[name][0].split()
    options = {'family': family, 'tokenizer': False}
    block = open_model(folder, model, format=source, **options).block
    again = open_model(tmp_path / 'out', model, **options).block
    assert len(read_tensors(str(output))[0]) > 5
    assert_equal(tensors_of(again), tensors_of(block))


@pytest.mark.parametrize(
    'words',
    ['pytorch_pretrained_bert convert_gpt2_checkpoint', 'convert_gpt2_checkpoint_to_pytorch'],
)
def test_converters_by_older_names_and_flags(zoo, words, fixtures, tmp_path, capsys):
    folder = fixtures / 'checkpoints' / 'gpt2_tensorflow'
    flags = (
        f'--gpt2_checkpoint_path {folder}/model.ckpt --gpt2_config_file '
        f'{folder}/hparams.json --pytorch_dump_folder_path {tmp_path}'
    ).split()
    words = words.split()
    assert run(zoo, *words, *flags) == 0, capsys.readouterr().err
    names = read_tensors(str(tmp_path / 'pytorch_model.bin'))[0]
    assert names['h.0.attn.bias'].shape[-1] > 1  # a buffer there, without which it isn't strict
    for wrong in ([folder / 'model.ckpt'], [*flags, 'more']):
        with pytest.raises(SystemExit):
            run(zoo, *words, *wrong)
