"""Run the commands of the documentation, shortened, most of them in this process."""

import contextlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
from unittest import mock

from json_files import cases
from pages import PageError
from script_runs import ROOT, load_script

import bert_embedding.cli
from model_zoo.app import cli
from model_zoo.errors import MissingExtraError

#: commands that aren't run, and why
NOT_RUN = {
    'pip': 'it would change the environment that the tests run in',
    'git': 'it needs a network',
    'cd': 'each command is run in the folder of its page',
}
#: a command with this word needs a server: only its flags are checked, and
#: tests/scripts/test_remote_runs.py runs similar ones
REMOTE = 's3://'
#: these only read files, and are run as they are
LOOKS = ('cat', 'head', 'ls', 'wc')
#: these take minutes, never end, or are run by tests of their own; their flags are checked
PARSED_ONLY = ('scripts/benchmark/', 'scripts/originals/', 'scripts/serve.py', 'tests/oracle/')
TINY = '--hparams num_layers=2,units=16,hidden_size=32,num_heads=2'
#: flags that replace a command's own, and aren't added to others
OPTIONAL = ('--max_length', '--learn_vocab', '--mem_len', '--tgt_len')
#: flags, each with a value, that follow the own flags of a script that trains, and shorten it
SHORT_TRAINING = '--training_steps 2 --batch_size 4 --dev_batch_size 8 --max_length 32'
#: script -> other flags that shorten it
SHORTENING = cases('commands')['SHORTENING']
EMBEDDING = 'bert_embedding/bert.py'  # the command bert-embedding without an installation


class _Understood(Exception):
    """The flags of a command have been parsed."""


def _captured():
    """Return a stream for what is printed, with all methods of sys.stdout."""
    return io.TextIOWrapper(io.BytesIO(), encoding='utf-8', write_through=True)


def _text(stream):
    return stream.buffer.getvalue().decode()


class Runner:
    """Run commands in the current folder.

    Parameters
    ----------
    short_data : callable
        ``short_data(word) -> word``: replaces a data set's file by a shortened copy.
    """

    def __init__(self, short_data):
        self._short_data = short_data
        self._modules = {}

    def __call__(self, text, output_matters=False):
        """Run a command.

        Parameters
        ----------
        text : str
        output_matters : bool
            The page shows the output, so the command isn't shortened.

        Returns
        -------
        str or None
            What it printed; None if it can't be run here.

        Raises
        ------
        PageError
            If it fails, or if the runner doesn't know it.
        """
        loop = re.fullmatch(r'until (.*); do sleep \d+; done', text.strip())
        words = shlex.split(loop.group(1) if loop else text, comments=True)
        if words[0] in NOT_RUN:
            return None
        if words[0] in LOOKS:
            return _run_process(words)
        if words[0] == 'make':
            return _run_process(['make', '-n', *words[1:]], cwd=ROOT)
        if words[0] == 'horovodrun':  # tests/scripts/test_run_pretraining_hvd.py runs it
            place = words.index('python')
            return self._parse(words[place + 1], words[place + 2 :])
        if words[0] == 'bert-embedding':
            words[:1] = ['python', EMBEDDING]
        if words[0] == 'zoo' and words[1:] and not words[1].startswith('-'):
            words[:2] = ['python', _script_of(words[1])]
        if words[0] != 'python' or len(words) < 2:
            raise PageError(f'{words[0]!r}: the runner of the pages does not know this command')
        script, argv = words[1], words[2:]
        if script.startswith(PARSED_ONLY) or any(REMOTE in word for word in argv):
            return self._parse(script, argv)
        if not output_matters:
            argv = self._shortened(script, argv)
        return self._run_main(self._module(script).main, argv)

    def _shortened(self, script, argv):
        """Return the arguments for a short run on this machine."""
        name = pathlib.Path(script).stem
        usual = SHORT_TRAINING if name.startswith('finetune_') else ''
        argv = [self._short_data(word) for word in _without_gpus(argv)]
        extra = SHORTENING.get(name, usual).split()
        if name.startswith('run_pretraining'):
            extra += ['--total_batch_size' if '--total_batch_size' in argv else '--batch_size', '4']
            # without these it would be a new BERT base
            if '--pretrained' not in argv and not {'--model_parameters', '--resume'} & {*argv}:
                extra += TINY.split()
        return argv + _fitting(extra, argv, name) + _data_that_is_downloaded(name, argv)

    def _module(self, script):
        """Import a script, and add its folder to the path, as Python does for a script."""
        if script not in self._modules:
            path = ROOT / script
            if not path.is_file():
                raise PageError(f'{script}: there is no such file in the project')
            if script == EMBEDDING:
                return bert_embedding.cli
            if str(path.parent) not in sys.path:
                sys.path.append(str(path.parent))
            self._modules[script] = load_script(path.stem, path.parent)
        return self._modules[script]

    def _parse(self, script, argv):
        """Let the script parse its arguments, and stop it there."""
        parse_args = cli.Parser.parse_args

        def parse_only(parser, *args, **kwargs):
            parse_args(parser, *args, **kwargs)
            raise _Understood

        patch = mock.patch.object(cli.Parser, 'parse_args', parse_only)
        with patch, contextlib.suppress(_Understood):
            self._run_main(self._module(script).main, argv)
            raise PageError(f'{script} parses no arguments')

    @staticmethod
    def _run_main(main, argv):
        missing = []

        def main_if_installed(argv):
            try:
                return main(argv)
            except MissingExtraError as error:  # an optional library isn't in this environment
                missing.append(error)

        printed, complaints = _captured(), _captured()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
            try:
                status = cli.run(main_if_installed, argv)
            except SystemExit as error:  # argparse's
                status = error.code
        if status:
            last = '\n'.join(_text(complaints).strip().splitlines()[-8:])
            raise PageError(f'{" ".join(argv)}\nends with status {status}:\n{last}')
        return None if missing else _text(printed)


def _script_of(command):
    """Return the path of the file that ``zoo`` runs as `command`."""
    zoo = load_script('zoo', ROOT / 'scripts')
    commands = zoo.list_commands()
    return os.path.relpath(commands[zoo.find(command, commands)], ROOT)


def _without_gpus(argv):
    """Return `argv` without the flags that need a GPU; ``--gpu`` has a value or none."""
    result, words = [], list(argv)
    while words:
        word = words.pop(0)
        if word not in ('--gpu', '--gpus'):
            result.append(word)
        elif words and not words[0].startswith('-'):
            words.pop(0)
    return result


def _fitting(extra, argv, name):
    """Return the flags of `extra`, each with a value, that fit a command."""
    left_out = {flag for flag in OPTIONAL if flag not in argv}
    if name == 'finetune_lm' and '--pregenerated_data' in argv:
        left_out.add('--max_length')  # the samples have a length
    if '--train_batch_size' in argv:  # --batch_size is a part of it
        extra = [word.replace('--batch_size', '--train_batch_size') for word in extra]
    pairs = zip(extra[::2], extra[1::2])
    return [word for pair in pairs if pair[0] not in left_out for word in pair]


def _data_that_is_downloaded(name, argv):
    """Return flags for files that replace the downloads of a user."""
    found = []
    if name == 'finetune_classifier' and not {'--config', '--data_dir', '--train_file'} & {*argv}:
        task = argv[argv.index('--task_name') + 1]
        found = [] if task == 'custom' else ['--data_dir', f'downloaded/{task}']
    if name == 'finetune_squad':
        version = '2.0' if '--version_2' in argv else '1.1'
        for part in ('train', 'dev'):
            if f'--{part}_file' not in argv:
                found += [f'--{part}_file', f'downloaded/squad/{part}-v{version}-part.json']
    return found


def _run_process(command, cwd=None):
    streams = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT}
    result = subprocess.run(command, cwd=cwd, text=True, timeout=900, check=False, **streams)
    if result.returncode:
        last = '\n'.join(result.stdout.strip().splitlines()[-8:])
        raise PageError(f'{" ".join(command)}\nends with {result.returncode}:\n{last}')
    return result.stdout
