"""Run the code blocks of the documentation's pages.

The conventions, for README.rst and docs/**/*.rst:

- ``.. code-block:: python``: all of a page's are run in order, in one namespace and one folder. A
  top-level statement that prints states its output in a comment, at the end of its last line or on
  the lines below it.
- ``.. code-block:: console``: ``$ command``, continued by a backslash; the lines that follow are
  its output, whose numbers may differ a little. `commands` runs them.
- other literal blocks hold formats and outputs of files; one with the option ``:caption: NAME`` is
  that file, which the blocks after it find.
"""

import ast
import contextlib
import io
import pathlib
import re
import sys
import textwrap
import types
from typing import NamedTuple

RUN = ('python', 'console')
_DIRECTIVE = re.compile(r'( *)\.\. (code-block|code|sourcecode|parsed-literal|doctest)::(.*)')
# code, wherever it stands
_CODE = re.compile(
    r' *(\$ |>>> |(python3?|pip|make|horovodrun|bert-embedding|import) |from \S+ import )'
)
_NUMBER = re.compile(r'-?\d+\.?\d*(?:e[-+]?\d+)?')


class PageError(AssertionError):
    """A page doesn't do what it says; the message begins with the place, page:line."""


class Block(NamedTuple):
    """A literal block."""

    kind: str  # the language; '::' where none is named
    line: int  # number of its text's first line
    text: str
    file: str = ''  # the name that its caption gives it


def find_blocks(text):
    """Return the literal blocks of a page, as a list of Block."""
    lines, blocks, number = [line.rstrip() for line in text.splitlines()], [], 0
    while number < len(lines):
        line = lines[number]
        number += 1
        directive, caption = _DIRECTIVE.fullmatch(line), None
        if directive:
            kind = directive.group(3).strip() or directive.group(2)
            while number < len(lines) and re.match(r' +:[\w-]+:', lines[number]):
                caption = re.match(' +:caption: (.+)', lines[number]) or caption
                number += 1
        elif line.rstrip().endswith('::') and not line.lstrip().startswith('.. '):
            kind = '::'
        else:
            continue
        while number < len(lines) and not lines[number].strip():
            number += 1
        first, margin = number, re.match(' *', line).group() + ' '
        while number < len(lines) and (lines[number].startswith(margin) or not lines[number]):
            number += 1
        body = textwrap.dedent('\n'.join(lines[first:number])).rstrip()
        if body:
            file = caption.group(1) if caption else ''
            blocks.append(Block(kind, first + 1, body + '\n', file))
    return blocks


def find_faults(text):
    """Return the lines of code that the runner doesn't see, as a list of 'line: what is wrong'."""
    lines = [row for row in enumerate(text.splitlines(), 1) if row[1].startswith('>>> ')]
    for block in find_blocks(text):
        if block.kind not in RUN:
            lines += [
                row for row in enumerate(block.text.splitlines(), block.line) if _CODE.match(row[1])
            ]
    return [
        f'{number}: {line.strip()!r} is code: put it into a code-block, python or console'
        for number, line in lines
    ]


def _commands_of(block, name):
    """Yield (line, text, output) of each command of a console block of the page `name`."""
    if not block.text.startswith('$ '):
        raise PageError(f'{name}:{block.line}: a console block begins with "$ "')
    for match in re.finditer(r'^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)', block.text, re.MULTILINE):
        line = block.line + block.text.count('\n', 0, match.start())
        yield line, re.sub(r'\\\n *', ' ', match.group(1)), match.group(2).strip()


def run_page(name, text, run_command):
    """Run a page's blocks in order, in the current folder.

    Parameters
    ----------
    name : str
        For messages and tracebacks.
    text : str
    run_command : callable
        ``run_command(text of a command, whether its output matters)`` -> what it printed, or None
        if it can't be run here. Raises PageError if it fails.

    Raises
    ------
    PageError
        If a block fails, or its output differs from the page.
    """
    module = types.ModuleType('a_page_of_the_documentation')
    sys.modules[module.__name__] = module  # where pickle and dataclasses look for it
    try:
        for block in find_blocks(text):
            if block.file:
                pathlib.Path(block.file).write_text(block.text, encoding='utf-8')
            elif block.kind == 'python':
                _run_python(name, block, module.__dict__)
            elif block.kind == 'console':
                for command in _commands_of(block, name):
                    _run_console(name, *command, run_command)
    finally:
        del sys.modules[module.__name__]


def _run_python(name, block, namespace):
    """Run a block, statement by statement, and compare what each prints."""
    lines = block.text.splitlines()
    padding = '\n' * (block.line - 1)  # so that tracebacks have the page's lines
    try:
        tree = ast.parse(padding + block.text, name)
    except SyntaxError as error:
        raise PageError(f'{name}:{error.lineno}: {error.msg}') from error
    for statement in tree.body:
        place = f'{name}:{statement.lineno}'
        printed = io.StringIO()
        code = compile(ast.Module([statement], []), name, 'exec')
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
        except (Exception, SystemExit) as error:
            raise PageError(f'{place}: {type(error).__name__}: {error}') from error
        promised = _promised(lines, statement, block.line)
        printed = printed.getvalue().splitlines()
        if printed and [line.rstrip() for line in printed] != promised:
            raise PageError(f'{place}: prints {printed}, and the page says {promised}')


def _promised(lines, statement, first_line):
    """Return the lines that a statement prints, by the comment behind it or the comments below."""
    last = statement.end_lineno - first_line
    behind = lines[last].encode()[statement.end_col_offset :].decode().strip()
    if behind.startswith('#'):
        return [behind[2:]]
    promised = []
    for line in lines[last + 1 :]:
        if not line.startswith('#'):
            break
        promised.append(line[2:].rstrip())
    return promised


def _run_console(name, line, text, output, run_command):
    try:
        printed = run_command(text, bool(output))
    except PageError as error:
        raise PageError(f'{name}:{line}: {error}') from error
    if output and printed is not None and not _same(printed, output):
        raise PageError(f'{name}:{line}: prints\n{printed}\nand the page says\n{output}')


def _same(printed, promised):
    """Return whether texts differ at most in white space and rounding."""
    if _words(printed) != _words(promised):
        return False
    pairs = zip(_NUMBER.findall(printed), _NUMBER.findall(promised))
    return all(
        one == other or (re.search('[.e]', one + other) and abs(float(one) - float(other)) < 1e-4)
        for one, other in pairs
    )


def _words(text):
    """Return a text's words with zeros for numbers; NumPy pads numbers before , and ]."""
    return re.sub(r'\s+(?=[,\]])', '', _NUMBER.sub('0', text)).split()
