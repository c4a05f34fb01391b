"""Samples of which some parts are finished, and the errors of a Ray cluster that makes them."""

import os
import sys

import pytest
from ray_alone import run_alone

from bert.tokenizer import BertTokenizer
from model_zoo.errors import MissingExtraError
from model_zoo.tasks.pretraining import Corpus, SampleMaker, SampleOptions, create_shards

OPTIONS = SampleOptions(32, 5, 3)


@pytest.fixture
def maker(fixtures):
    folder = fixtures / 'pretraining'
    text = [str(folder / 'sample_text.txt')] * 40
    return SampleMaker(Corpus(text), BertTokenizer(folder / 'vocab.txt'), OPTIONS)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_finished_parts_are_left_out(maker, tmp_path, monkeypatch):
    made = []
    make = SampleMaker.make
    monkeypatch.setattr(
        SampleMaker, 'make', lambda self, *args: made.append(args[-1]) or make(self, *args)
    )
    first = create_shards(maker, tmp_path, num_outputs=5, resume=True)
    before = contents(tmp_path)
    assert made == [0, 1, 2, 3, 4] and len(before) == 5
    del made[:]
    assert create_shards(maker, tmp_path, num_outputs=5, resume=True) == first and not made
    os.remove(tmp_path / 'part-001.npz')
    (tmp_path / 'part-003.npz').write_bytes(b'cut off')
    (tmp_path / '.part-001.npz0123abcd.part').write_bytes(b'of a killed worker')
    os.remove(tmp_path / '.done' / 'part-004.npz.json')
    assert create_shards(maker, tmp_path, num_outputs=5, resume=True) == first
    assert made == [1, 3, 4] and contents(tmp_path) == before
    del made[:]
    create_shards(maker, tmp_path, num_outputs=5, resume=True, seed=1)  # another job
    assert len(made) == 5 and contents(tmp_path) != before
    del made[:]
    create_shards(maker, tmp_path, num_outputs=5)
    assert len(made) == 5 and contents(tmp_path) == before


def test_without_ray(maker, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(MissingExtraError, match=r'gluon-transformer-zoo\[ray\]'):
        create_shards(maker, tmp_path, ray='auto')


PROGRAM = """
import json
from model_zoo.errors import InputError
from model_zoo.util.executor import RayTasks

def fail(number):
    raise InputError(f'bad number {number}')

said = []
for address in ('auto', 'local'):
    try:
        with RayTasks(fail, address) as tasks:
            tasks.submit(7).result()
    except InputError as error:
        said.append(str(error))
print(json.dumps(said))
"""


@pytest.mark.slow
def test_errors_without_a_cluster_and_of_a_task():
    """tests/scripts kills workers and machines while they make samples."""
    without, of_a_task = run_alone('-c', PROGRAM)
    assert without.startswith('`ray` auto: no Ray cluster can be reached (')
    assert '\n' not in without and of_a_task == 'bad number 7'
