"""The errors that this project raises on bad input.

Each message names the thing, the value, and what to do. An error of a parameter that the caller may
have set has its name apart, as `field`: 'max_length 600: the model takes 512 tokens at most'. The
commands print the message as one line, with the flag instead of the name, and exit with a non-zero
status (see ``model_zoo.app.cli``). Other parameters that a message mentions are in backquotes.

Every function raises `InputError` for an argument or a file that can't be used, and
`UnknownNameError` for an unknown name. Their documentation names other errors, and conditions that
aren't obvious.
"""

import contextlib
import difflib
import importlib.util
import re
import sys
import traceback
from typing import NamedTuple

__all__ = [
    'CheckpointError',
    'InputError',
    'MissingExtraError',
    'PretrainedNotFoundError',
    'UnknownNameError',
    'Where',
    'ZooError',
]

_MOST = 6000  # characters of a message; a longer one keeps its beginning and its end
_KEPT = 4000, 500
#: packages whose frames a notebook doesn't show
_OURS = ('model_zoo', 'bert', 'gpt', 'gpt2', 'transfo_xl', 'bert_embedding', 'export')
_MANY, _SIMILAR = 60, 12  # if there are more known names than 60, the 12 most similar are shown


class ZooError(Exception):
    """Base of every error that the user can fix.

    Its message is one line of limited length, even if it quotes a file or an argument.

    Parameters
    ----------
    *args : object
        What is wrong.
    field : str, optional
        The parameter or setting that it is wrong with; the message begins with it.
    """

    def __init__(self, *args, field=None):
        self.field = field
        if field is not None:
            self._problem, *others = args
            args = (f'{field} {self._problem}', *others)
        super().__init__(*map(_shortened, args))

    def _render_traceback_(self):
        """Return what IPython shows: the line that called this project, and the message."""
        place = None
        for frame, line in traceback.walk_tb(self.__traceback__):
            if is_ours(frame):
                break
            place = frame, line
        frames = traceback.StackSummary.extract([] if place is None else [place])
        return [*(line.rstrip() for line in frames.format()), f'{type(self).__name__}: {self}']

    def naming(self, name_of, form='{}'):
        """Return the message with other names of the fields, such as their flags.

        ``name_of(field)`` is another name of `field`, and of those mentioned, or None; see
        `rename_fields`.
        """
        if self.field is None:
            return rename_fields(str(self), name_of, form)
        problem = rename_fields(str(self._problem), name_of, form)
        return _shortened(f'{name_of(self.field) or self.field} {problem}')


def is_ours(frame, *others):
    """Return whether a frame runs code of this project, or of packages of `others`' names."""
    return frame.f_globals.get('__name__', '').partition('.')[0] in (*_OURS, *others)


def rename_fields(message, name_of, form='{}'):
    """Return a message in which the fields in backquotes have other names.

    ``name_of(field)`` is the name, which is written in a `form`, or None.
    """

    def renamed(quoted):
        name = name_of(quoted[1])
        return quoted[0] if name is None else form.format(name)

    is_paired = message.count('`') % 2 == 0
    return re.sub('`([^`]*)`', renamed, message) if is_paired else message


def _shortened(message):
    if not isinstance(message, str):
        return message
    message = ' '.join(message.splitlines())
    if len(message) <= _MOST:
        return message
    return f'{message[: _KEPT[0]]} ... {message[-_KEPT[1] :]}'


class Where(NamedTuple):
    """A place in a file, or in rows that the caller has in memory."""

    source: str
    line: int | None = None
    column: str | int | None = None
    unit: str = 'line'

    def __str__(self):
        line = '' if self.line is None else f', {self.unit} {self.line}'
        return f'{self.source}{line}' + ('' if self.column is None else f', column {self.column!r}')


class InputError(ZooError, ValueError):
    """A value, a shape or a data file that can't be used; `where` is its place, if there is one."""

    def __init__(self, *args, where=None, **named):
        if where is not None:
            args = (f'{where}: {args[0]}',)
        super().__init__(*args, **named)
        self.where = where


class UnknownNameError(ZooError, ValueError):
    """An unknown model, data set, task or option; the message lists the known ones."""

    @classmethod
    def of(cls, noun, name, known, field=None):
        """Build the error for `name`, a `noun` such as 'task' that isn't among the `known` names.

        A name that may be meant comes first. If very many names are known, the message has the most
        similar ones. If the name is the value of a `field`, the message leaves out the noun.
        """
        known, name = sorted(map(str, known)), name[:200] if isinstance(name, str) else name
        shown, more = known, ''
        if len(known) > _MANY:
            shown = difflib.get_close_matches(str(name), known, _SIMILAR, cutoff=0)
            more = f' and {len(known) - len(shown)} more'
        hint = did_you_mean(name, known) or ';'
        problem = f'unknown {noun} {name!r}' if field is None else f'{name!r} is unknown'
        return cls(f'{problem}{hint} known: {", ".join(shown)}{more}', field=field)

    @classmethod
    def check(cls, noun, name, known, field=None):
        """Raise the error unless `name` is one of the `known` names of a `noun`."""
        if name not in [*known]:  # a name from a file may be a list or the like
            raise cls.of(noun, name, known, field)


class CheckpointError(ZooError, ValueError):
    """A file of weights that is damaged, has another format, or doesn't fit the model."""


class PretrainedNotFoundError(ZooError, FileNotFoundError):
    """No source has the pretrained weights; the message lists the places that were searched."""

    @classmethod
    def of(cls, lines):
        """Build the error of a few lines: what is missing and its cure, other cures, the places."""
        error = cls()
        error.args = ('\n'.join(map(_shortened, lines)),)
        return error


class MissingExtraError(ZooError, ImportError):
    """An optional library is missing; the message names the extra that installs it."""

    @classmethod
    def of(cls, library, extra):
        """Build the error for `library`, which `extra` of this distribution installs."""
        command = f"pip install 'gluon-transformer-zoo[{extra}]'"
        return cls(f'{library} must be installed for this: {command}')

    @classmethod
    def check(cls, extra, *libraries):
        """Raise the error unless these libraries of an extra are installed."""
        for library in libraries:
            if library in sys.modules:  # a program may have put something there, or None
                is_there = sys.modules[library] is not None
            else:
                is_there = importlib.util.find_spec(library) is not None
            if not is_there:
                raise cls.of(library, extra)


@contextlib.contextmanager
def reporting(problem, cure='', error_class=InputError, errors=OSError):
    """Raise an error as a `ZooError`: `problem`, its cause, `cure`.

    By default these `errors` are the operating system's. A `ZooError` stays as it is, unless
    `errors` names its class.
    """
    try:
        yield
    except errors as error:
        if errors in (OSError, Exception) and isinstance(error, ZooError):
            raise
        cause = getattr(error, 'strerror', None) or str(error) or type(error).__name__
        raise error_class(f'{problem}: {cause}{cure}') from error


def did_you_mean(name, known):
    """Return the end of a message about an unknown name."""
    by_form = {_form(word): word for word in known}
    close = difflib.get_close_matches(_form(str(name)), by_form, 1)
    return f'; did you mean {by_form[close[0]]}?' if close else ''


def _form(name):
    """Return a name without case, leading dashes, and the difference of dash and underscore."""
    return name.lstrip('-').lower().replace('-', '_')
