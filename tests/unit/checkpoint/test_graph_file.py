"""Damaged files of graphs are refused: MXNet would follow their numbers out of memory."""

import copy
import json

import mxnet as mx
import pytest

from model_zoo.checkpoint.readers import check_sums, sums_path, write_sums
from model_zoo.checkpoint.tensor_files import check_graph
from model_zoo.errors import CheckpointError


@pytest.fixture
def graph():
    first, second = mx.sym.split(mx.sym.var('data'), num_outputs=2)
    return json.loads((mx.sym.Activation(first, act_type='relu') + second).tojson())


def check(tmp_path, graph):
    path = tmp_path / 'a-symbol.json'
    path.write_text(graph if isinstance(graph, str) else json.dumps(graph))
    check_graph(str(path))


def numbers_of(graph):
    """All places of numbers of nodes and of outputs in a graph."""
    yield from ((graph['arg_nodes'], i) for i in range(len(graph['arg_nodes'])))
    for sources in (graph['heads'], *(node['inputs'] for node in graph['nodes'])):
        for source in sources:
            yield source, 0
            yield source, 1


def test_each_number_of_a_graph(tmp_path, graph):
    check(tmp_path, graph)
    count = len(list(numbers_of(graph)))
    assert count > 10
    for place in range(count):
        for value in (-1, 10**9, 'x', None, 1.5):
            damaged = copy.deepcopy(graph)
            holder, index = list(numbers_of(damaged))[place]
            holder[index] = value
            with pytest.raises(CheckpointError):
                check(tmp_path, damaged)


def test_a_graph_that_goes_in_circles(tmp_path, graph):
    graph['nodes'][1]['inputs'][0][0] = 2
    with pytest.raises(CheckpointError):
        check(tmp_path, graph)


def test_checksums(tmp_path):
    files = [tmp_path / 'a-symbol.json', tmp_path / 'a-0000.params']
    for file in files:
        file.write_bytes(b'content')
    path = sums_path(str(files[0]))
    check_sums(path)  # of an export without them
    write_sums(path, [str(file) for file in files])
    check_sums(path)
    files[1].write_bytes(b'contend')
    with pytest.raises(CheckpointError):
        check_sums(path)
    files[1].unlink()
    with pytest.raises(CheckpointError):
        check_sums(path)
