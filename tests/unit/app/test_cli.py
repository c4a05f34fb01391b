"""What the command lines share: one message and an exit status."""

import logging
import re
import subprocess

import mxnet as mx
import pytest
from refusals import refuses
from script_runs import start

from model_zoo.app import cli
from model_zoo.errors import InputError, MissingExtraError

ERRORS = [
    (InputError('the value is wrong'), 1, 'error: the value is wrong'),
    (MissingExtraError.of('onnx', 'onnx'), 1, None),
    (KeyboardInterrupt('the checkpoint is kept'), 130, 'interrupted: the checkpoint is kept'),
    (PermissionError(13, 'Permission denied', '/log'), 1, 'error: /log: Permission denied'),
    (OSError(28, 'No space left on device'), 1, 'error: No space left on device'),
    (mx.MXNetError('Traceback:\n  File "a.cc"\nA: wrong\n\n'), 1, 'error: MXNet: A: wrong'),
    (mx.MXNetError('[1:0] a: no\nStack trace:\n  [bt]\n'), 1, 'error: MXNet: [1:0] a: no'),
    (mx.MXNetError(), 1, 'error: MXNet: MXNetError'),
]


@pytest.mark.parametrize('error, status, line', ERRORS)
def test_an_error_is_one_line_and_a_status(error, status, line, capsys):
    def main(argv):
        raise error

    assert cli.run(main) == status
    assert capsys.readouterr() == ('', f'{line or f"error: {error}"}\n')


def test_reader_that_leaves():
    program = """
import sys
from model_zoo.app import cli
sys.exit(cli.run(lambda argv: [print(i) for i in range(100000)]))
"""
    process = start('-c', program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == '0\n'
    process.stdout.close()
    with process:
        errors = process.stderr.read()
    assert 'Traceback' not in errors


FIELDS = [('max_length', '--max_length'), ('dtype', '--fp16'), ('elsewhere', 'elsewhere')]


@pytest.mark.parametrize('field, name', FIELDS)
def test_a_field_is_told_as_the_flag_that_sets_it(field, name, capsys):
    def main(argv):
        parser = cli.parser('A test.')
        parser.add_argument('--max_length')
        parser.add_aliases('max_length', 'max_len')
        parser.add_argument('--fp16', dest='dtype', action='store_true')
        parser.parse_args(argv)
        raise InputError('needs `dtype` and `resume`', field=field)

    assert cli.run(main, []) == 1
    assert capsys.readouterr().err == f'error: {name} needs --fp16 and `resume`\n'


def test_names_in_the_log_are_text(capfd):
    """No name makes an entry of its own, and none controls the terminal."""
    cli.setup_logging()
    try:
        raise ValueError('x\n12:00:00 forged')
    except ValueError:
        name = 'a\n12:00:00 error: forged\r\x1b[2J<b>\u202e'
        logging.getLogger('zoo').exception('%s: a model', name)
    lines = capfd.readouterr().err.splitlines()
    assert re.match(r'[\d:]+ error: a$', lines[0])
    assert lines[1] == r'    12:00:00 error: forged\r\x1b[2J<b>\u202e: a model'
    assert all(line.startswith('    ') for line in lines[1:]) and '    12:00:00 forged' in lines


def test_logging_to_a_file(tmp_path):
    cli.setup_logging(str(tmp_path / 'log'))
    logging.getLogger('room').info('a message of %s', 'ours')
    logging.getLogger('room').debug('a detail')
    logging.getLogger('room').warning('mind the step')
    text = (tmp_path / 'log').read_text()
    lines = [re.fullmatch(r'\d\d:\d\d:\d\d (.*)', line).group(1) for line in text.splitlines()]
    assert lines == ['a message of ours', 'warning: mind the step']


def many_flags():
    parser = cli.parser('A test.', prog='test')
    parser.add_config()
    for number in range(cli.MANY):
        parser.add_argument(f'--rare_{number}')
    parser.add_argument('--lr', type=float)
    parser.usual.add('lr')
    parser.add_argument('--labels', nargs='+')
    parser.add_argument('--fast', action='store_true')
    parser.add_argument('--cased', type=cli.boolean, nargs='?', const=True)
    return parser


def test_help_of_many_flags_shows_the_usual_ones(capsys):
    for word, is_all in (('--help', False), ('--help-all', True)):
        with pytest.raises(SystemExit) as stop:
            many_flags().parse_args([word])
        assert stop.value.code == 0
        shown = capsys.readouterr().out
        assert '--lr' in shown and '--config' in shown
        assert ('--rare_7' in shown) == is_all
        assert ('test --help-all explains 45 more flags' in shown) != is_all


def test_flags_from_a_file(tmp_path):
    path = tmp_path / 'run.yaml'
    path.write_text('lr: 5e-5\nrare_1: a b\nlabels: [-1b, y]\nfast: true\ncased: false\nrare_2:\n')
    args = many_flags().parse_args(['--config', str(path), '--rare-1', 'c'])
    assert (args.lr, args.rare_1, args.labels) == (5e-5, 'c', ['-1b', 'y'])
    assert args.fast and args.cased is False and args.rare_2 is None
    assert not hasattr(args, 'config')
    cli.write_yaml(str(path), vars(args))
    again = many_flags().parse_args([f'--config={path}'])
    assert again == args


BAD = ['lrr: 1', '- lr', 'lr: [', f'lr: {"9" * 5000}', '!!python/name:os.getcwd', 'config: x', None]


@pytest.mark.parametrize('content', BAD)
def test_bad_files_of_flags(tmp_path, content):
    path = tmp_path / 'run.yaml'
    if content is not None:
        path.write_text(content)
    with refuses(says='run.yaml'):
        many_flags().parse_args(['--config', str(path)])
