"""Shared parts of all command lines: one clear message and an exit status on errors."""

import argparse
import contextlib
import contextvars
import logging
import re
import sys

from ..errors import InputError, ZooError, did_you_mean, rename_fields

logger = logging.getLogger(__name__)


class _Command:
    """A running command: its parser, and what it is to log."""

    def __init__(self):
        self.parser, self.notes = None, []


_running = contextvars.ContextVar('command', default=None)

#: a command with more flags shows the usual ones only, unless asked by ``--help-all``
MANY = 42


class _Formatter(argparse.HelpFormatter):
    """Shows the defaults, also for flags without a help text."""

    def _format_action(self, action):
        none = any(action.default is value for value in (None, False, argparse.SUPPRESS))
        if action.option_strings and not none and '%(default)' not in (action.help or ''):
            action.help = f'{action.help or ""} (default: %(default)s)'.strip()
        return super()._format_action(action)


class _LogFormatter(logging.Formatter):
    """Time, level and message; further lines are indented, and control characters escaped."""

    def format(self, record):
        lines = super().format(record).rstrip('\n').split('\n')
        return '\n    '.join(
            ''.join(c if c.isprintable() or c == '\t' else ascii(c)[1:-1] for c in line)
            for line in lines
        )

    def formatMessage(self, record):
        if record.levelno >= logging.WARNING:
            message = rename_fields(record.message, _flag_of)
            record.message = f'{record.levelname.lower()}: {message}'
        elif record.levelno < logging.INFO:
            record.message = f'{record.name}: {record.message}'
        return super().formatMessage(record)


class Words(list):
    """The words of a command line, and others that come before them: an original's defaults."""

    def __init__(self, words, preset=()):
        super().__init__(words)
        self.preset = preset


class Arguments(argparse.Namespace):
    """The values of flags; `given` names the user's, `of_file` those from a file."""

    __slots__ = ('given', 'of_file')  # apart from the flags, which vars() has


class Parser(argparse.ArgumentParser):
    """A parser whose flags may also be written as the originals' parsers take them.

    They may have dashes for underscores, or one dash, and be switched off by ``--noFLAG``. Where
    there are many, the help shows the `usual` ones, and ``--help-all`` all.
    """

    def __init__(self, *args, **kwargs):
        self._takes_config, self.usual, self._used = False, {'help', 'config'}, {}
        super().__init__(*args, **kwargs)

    def parse_known_args(self, args=None, namespace=None):
        if _running.get() is not None:
            _running.get().parser = self
        for word in args.preset if isinstance(args, Words) else ():
            flag, equals, value = self._spelled(word).partition('=')
            self.set_defaults(**{self._option_string_actions[flag].dest: value if equals else True})
        args = [self._spelled(word) for word in (sys.argv[1:] if args is None else args)]
        if '--help-all' in args and self.add_help:
            print(self.format_help(everything=True), end='')
            self.exit()
        configured = self._read_config(args) if self._takes_config else {}
        self.set_defaults(**configured)
        namespace, others = super().parse_known_args(args, namespace or Arguments())
        flags, known = [word.partition('=')[0] for word in args], self._option_string_actions
        # flags and words that are mixed come in two turns
        self._used.update((known[flag].dest, flag) for flag in flags if flag in known)
        namespace.given = {*self._used, *configured}
        namespace.of_file = namespace.given.difference(self._used)
        if self._takes_config:  # which has been read
            vars(namespace).pop('config', None)
        return namespace, others

    def add_config(self):
        """Add ``--config``: a YAML file of flags, which the command line's flags override."""
        help = "YAML file with one FLAG: VALUE per line, such as a run's settings.yaml"
        self.add_argument('--config', metavar='FILE', default=argparse.SUPPRESS, help=help)
        self._takes_config = True

    def _read_config(self, args):
        """Return the values in the file of ``--config``, which are the flags' defaults."""
        path, values = None, {}
        for word, following in zip(args, [*args[1:], '']):
            if word.partition('=')[0] == '--config':
                path = word.partition('=')[2] or following
        for name, value in ({} if path is None else _read_yaml(path)).items():
            flag = self._spelled(f'--{name}')
            flag = flag if flag in self._option_string_actions else self.flag_of(name)
            if flag is None or flag == '--config':
                hint = did_you_mean(f'--{name}', self._option_string_actions)
                raise InputError(f'--config {path!r}: there is no flag --{name}{hint}')
            action = self._option_string_actions[flag]
            if value is not None and action.dest != argparse.SUPPRESS:
                values[action.dest] = value
        return values

    def format_help(self, everything=False):
        """Return the help; if a command has many flags, only the help of the usual ones."""
        flags = [a for a in self._actions if a.option_strings and a.help != argparse.SUPPRESS]
        hidden = [] if everything or len(flags) <= MANY else flags
        helps = {action: action.help for action in hidden if action.dest not in self.usual}
        for action in helps:
            action.help = argparse.SUPPRESS
        text = super().format_help()
        for action, help in helps.items():
            action.help = help
        more = f'\n{self.prog} --help-all explains {len(helps)} more flags\n' if helps else ''
        return text + more

    def add_aliases(self, flag, *aliases):
        """Add other names of an existing flag, without dashes; the help doesn't show them."""
        for alias in aliases:
            self._option_string_actions.setdefault(
                f'--{alias}', self._option_string_actions[f'--{flag}']
            )

    def _spelled(self, word):
        """Return a word of the command line, with flags in the parser's spelling."""
        name, equals, value = word.partition('=')
        if not re.match('--?[A-Za-z]', name) or name in self._option_string_actions:
            return word
        key = _key(name)
        flags = {_key(flag): flag for flag in self._option_string_actions}
        if key in flags:
            return flags[key] + equals + value
        switch = flags.get(re.sub('^no_?', '', key))
        if switch and not equals and self._option_string_actions[switch].type is boolean:
            return f'{switch}=false'
        if name.startswith('--'):
            matches = [flag for known, flag in flags.items() if known.startswith(key)]
            matches = list(filter(self._is_shown, matches)) or matches
            if len({id(self._option_string_actions[flag]) for flag in matches}) == 1:
                return matches[0] + equals + value
        return word

    def _is_shown(self, flag):
        action = self._option_string_actions[flag]
        return flag in action.option_strings and action.help != argparse.SUPPRESS

    def parse_args(self, args=None, namespace=None):
        return self._all_known(*self.parse_known_args(args, namespace))

    def parse_intermixed_args(self, args=None, namespace=None):
        return self._all_known(*self.parse_known_intermixed_args(args, namespace))

    def _all_known(self, namespace, others):
        if others:
            names = [word.split('=')[0] for word in others if re.match('--?[A-Za-z]', word)]
            hints = [did_you_mean(name, self._option_string_actions) for name in names]
            self.error(f'unrecognized arguments: {" ".join(others)}{"".join(hints)}')
        return namespace

    def error(self, message):
        """End the command, in one line; argparse's own usage of a training takes sixty."""
        self.exit(2, f'{self.prog}: error: {message} ({self.prog} --help explains the flags)\n')

    def flag_of(self, field):
        """Return the flag that sets a field, as the user has written it; None if none does."""
        if field in self._used:
            return self._used[field]
        known = self._option_string_actions.get(f'--{field}')
        if known is not None:
            names = known.option_strings
            return f'--{field}' if f'--{field}' in names else names[0]
        actions = (action.option_strings for action in self._actions if action.dest == field)
        return next((flags[0] for flags in actions if flags), None)


def _read_yaml(path):
    import yaml

    try:
        with open(path, encoding='utf-8') as file:
            content = yaml.safe_load(file)
    # ValueError: bytes that aren't UTF-8, a date that there isn't, a number of too many digits
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        reason = ' '.join(str(error).split())
        raise InputError(f'--config {path!r} cannot be read: {reason}') from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise InputError(f'--config {path!r}: write one FLAG: VALUE per line, such as lr: 5e-5')
    return content


def write_yaml(path, values):
    """Write settings as ``--config`` reads them, whole or not at all."""
    import yaml

    from ..util.files import atomic_write

    values = {name: value for name, value in values.items() if value is not None and value != []}
    with atomic_write(path) as file:
        yaml.safe_dump(values, file, allow_unicode=True, sort_keys=False)


def _key(flag):
    return flag.lstrip('-').replace('-', '_')


def parser(description, **kwargs):
    """Return a `Parser` whose help shows the defaults."""
    return Parser(description=description, formatter_class=_Formatter, **kwargs)


def boolean(text):
    """Return the value of a flag such as Google's scripts have: ``--do_predict=true``."""
    values = {'true': True, 't': True, '1': True, 'false': False, 'f': False, '0': False}
    try:
        return values[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f'{text!r} is neither true nor false') from None


def message_of(error):
    """Return a message with the flags that set the fields that it names."""
    return error.naming(_flag_of)


def _flag_of(field):
    command = _running.get()
    return command.parser.flag_of(field) if command and command.parser else None


def note(message):
    """Log a message once the running command logs."""
    command = _running.get()
    command.notes.append(message) if command else logger.info('%s', message)


def run(main, argv=None):
    """Call ``main(argv)``, and turn errors into one line and an exit status.

    The status is what `main` returns, or 0; 1 after an error that the user can mend, of the
    operating system or of MXNet; 130 after Ctrl-C.
    """
    token = _running.set(_Command())
    try:
        return main(argv) or 0
    except ZooError as error:
        print(f'error: {message_of(error)}', file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        message = rename_fields(str(error), _flag_of)
        print(f'interrupted{": " + message if message else ""}', file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as `head`, has left
        sys.stderr.close()
        return 0
    except OSError as error:
        where = '' if error.filename is None else f'{error.filename}: '
        return _fail(f'{where}{error.strerror or error}')
    except Exception as error:
        mxnet = sys.modules.get('mxnet')
        if mxnet is None or not isinstance(error, mxnet.MXNetError):
            raise
        return _fail(f'MXNet: {_last_line(error)}')
    finally:
        _running.reset(token)


def run_script(main):
    """Call ``main()`` as `run` does, and exit with the status: for a file that is the program."""
    sys.exit(run(main))


@contextlib.contextmanager
def collected_warnings(name):
    """Enter with a list that gets the warnings of the modules in a package."""
    found, handler = [], logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())
    package = logging.getLogger(name)
    package.addHandler(handler)
    try:
        yield found
    finally:
        package.removeHandler(handler)


def _fail(message):
    """Print a library's error in one line; with `verbose` the log has all of it."""
    logger.debug('the error in full', exc_info=True)
    print(f'error: {message}', file=sys.stderr)
    return 1


def _last_line(error):
    """Return the line of an MXNetError that says what is wrong, the last before the C++ stack."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(('[bt]', 'Stack trace'))]
    return lines[-1] if lines else type(error).__name__


def setup_logging(log_file=None, verbose=False, level=logging.INFO):
    """Log time and message to standard error, and append to `log_file` if given."""
    handlers = [logging.StreamHandler()]
    if log_file is not None:
        handlers.append(logging.FileHandler(log_file, encoding='utf-8'))
    for handler in handlers:
        handler.setFormatter(_LogFormatter('%(asctime)s %(message)s', '%H:%M:%S'))
    logging.basicConfig(level=logging.DEBUG if verbose else level, handlers=handlers, force=True)
    logging.captureWarnings(True)
    for name in ('filelock', 'matplotlib', 'PIL', 'urllib3'):
        logging.getLogger(name).setLevel(max(level, logging.INFO))  # not what verbose is for
    if not verbose:  # its retries are in the error that ends them
        logging.getLogger('huggingface_hub.utils._http').setLevel(logging.ERROR)
    command = _running.get()
    while command and command.notes:
        logger.info('%s', command.notes.pop(0))
