"""MXNet's files of graphs (``symbol.json``), looked at before MXNet loads them.

MXNet follows the numbers in a graph without a check, so a damaged file can end the process.
"""

from ..errors import CheckpointError, InputError
from ..util.files import read_json
from .sums import SUMS

__all__ = ['check_graph', 'sums_path']

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


def sums_path(path):
    """Where the checksums of an export are.

    ``NAME-SHA256SUMS`` beside ``NAME-symbol.json``, ``NAME.onnx-SHA256SUMS`` beside ``NAME.onnx``.
    """
    end = '-symbol.json'
    return f'{path[: -len(end)] if path.endswith(end) else path}-{SUMS}'
