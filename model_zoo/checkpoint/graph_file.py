"""MXNet's files of graphs (``symbol.json``), looked at before MXNet loads them.

MXNet follows the numbers in a graph without a check, so a damaged file can end the process.
"""

import os

from ..errors import CheckpointError, InputError
from ..util.files import atomic_write, read_json, sha256_of

__all__ = ['check_graph', 'check_sums', 'sums_path', 'write_sums']

_MOST_OUTPUTS = 3  # of an operator that doesn't say their number


def check_graph(path):
    """Check that all numbers in a graph name a node that is there.

    Parameters
    ----------
    path : str
        Of a ``symbol.json``.

    Raises
    ------
    CheckpointError
        If it is damaged.
    """
    try:
        graph = read_json(path)
        nodes = graph['nodes']
        for place, node in enumerate(nodes):
            if not isinstance(node['op'], str) or not isinstance(node['name'], str):
                raise ValueError(f'node {place} has no operator')
            for source in node['inputs']:
                _check_source(nodes[:place], source)
        for source in graph['heads']:
            _check_source(nodes, source)
        for place in graph['arg_nodes']:
            _check_number(place, len(nodes))
    except (InputError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f'the graph {path!r} is damaged: {error}') from error


def _check_number(number, end):
    if type(number) is not int or not 0 <= number < end:
        raise ValueError(f'it names {number!r:.40} of {end}')


def _check_source(nodes, source):
    """A source is a node's number, the number of its output, and a version."""
    place, output = source[:2]
    _check_number(place, len(nodes))
    node = nodes[place]
    attributes = node.get('attrs', {})
    count = 1 if node['op'] == 'null' else int(attributes.get('num_outputs', _MOST_OUTPUTS))
    _check_number(output, count)


def sums_path(symbol_path):
    """Where the checksums of an export are: ``NAME-SHA256SUMS`` beside ``NAME-symbol.json``."""
    return symbol_path[: -len('symbol.json')] + 'SHA256SUMS'


def write_sums(path, files):
    """Write checksums of `files`, as ``sha256sum --check`` reads them.

    Parameters
    ----------
    path : str
    files : list of str
        Paths of files that are, or will be, in the same directory as `path`.
    """
    with atomic_write(path) as file:
        for each in files:
            file.write(f'{sha256_of(each)}  {os.path.basename(each)}\n')


def check_sums(path):
    """Compare the files that checksums at `path` name with them, if there are any.

    Raises
    ------
    CheckpointError
        If a file is missing or has changed.
    """
    if not os.path.exists(path):
        return
    folder = os.path.dirname(path)
    try:
        with open(path, encoding='utf-8') as file:
            sums = [line.rstrip('\n').split('  ', 1) for line in file]
        changed = [name for sum_, name in sums if sha256_of(os.path.join(folder, name)) != sum_]
    except (OSError, ValueError) as error:
        raise CheckpointError(f'cannot check the files that {path!r} names: {error}') from error
    if changed:
        raise CheckpointError(
            f'{os.path.join(folder, changed[0])!r} is damaged or was changed: its checksum is not '
            f'that in {path!r}; export the model again, or remove that file if you changed it'
        )
