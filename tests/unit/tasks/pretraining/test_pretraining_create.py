"""A corpus to files of samples: the same for any number of workers, in level memory."""

import os
import signal
import subprocess
import sys

import pytest
from refusals import refuses

from model_zoo.errors import InputError
from model_zoo.tasks.pretraining.create import ShardFacts, create_shards, plan_parts
from model_zoo.tasks.pretraining.files import read_shard
from model_zoo.tasks.pretraining.processes import Processes
from model_zoo.tasks.pretraining.text import Corpus, SampleMaker, SampleOptions


@pytest.fixture
def maker(fixtures, tokenizer):
    corpus = Corpus([str(fixtures / 'pretraining' / 'sample_text.txt')] * 6)
    return SampleMaker(corpus, tokenizer, SampleOptions(64, 10, 2))


def contents(folder):
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in paths}


def test_workers_make_no_difference(maker, tmp_path, monkeypatch):
    monkeypatch.setattr('model_zoo.tasks.pretraining.create.available_processors', lambda: 2)
    done = []
    one = create_shards(maker, tmp_path / 'one', 7, num_outputs=4)
    many = create_shards(
        maker, tmp_path / 'many', 7, 4, num_workers=2, progress=lambda *args: done.append(args)
    )
    assert contents(tmp_path / 'one') == contents(tmp_path / 'many')
    assert sorted(contents(tmp_path / 'one')) == [f'part-{n:03d}.npz' for n in range(4)]
    assert one == many == done[-1][2] and [n for n, _, _ in done] == [1, 2, 3, 4]
    create_shards(maker, tmp_path / 'other', 8, num_outputs=4)
    assert contents(tmp_path / 'one') != contents(tmp_path / 'other')
    parts = [read_shard(str(path)) for path in sorted((tmp_path / 'one').glob('*.npz'))]
    assert sum(part.count for part in parts) == one.samples
    assert sum(part.valid_lengths.sum() for part in parts) == one.tokens
    assert sum(part.masked_lm_weights.sum() for part in parts) == one.masks
    assert sum(part.next_sentence_labels.sum() for part in parts) == one.random_next
    assert ShardFacts(1, 2, 3, 4) + ShardFacts(1, 1, 1, 1) == (2, 3, 4, 5)


def test_number_of_files(maker, tmp_path):
    size = maker.corpus.num_bytes
    assert plan_parts(maker.corpus) == 1 and plan_parts(maker.corpus, 5) == 5
    assert plan_parts(maker.corpus, 2, size // 3 - 9) == 4
    create_shards(maker, tmp_path, part_bytes=size // 3 - 9)
    assert len(contents(tmp_path)) == 4
    (tmp_path / 'part-010.npz').touch()
    with refuses(says='part-010.npz'):
        create_shards(maker, tmp_path, num_outputs=4)
    (tmp_path / 'part-010.npz').unlink()
    for path in tmp_path.glob('*.npz'):
        path.write_bytes(b'old')
    create_shards(maker, tmp_path, num_outputs=60)  # more than there are documents
    names = contents(tmp_path)
    assert 4 < len(names) < 60 and b'old' not in names.values()


def fail(number):
    if number == 3:
        raise InputError('number 3')
    return number, os.getpid()


def die(number):
    os._exit(1)


KILLED = """
import os, signal
from model_zoo.tasks.pretraining.processes import Processes
with Processes(os.getpid, 1) as processes:
    assert list(processes.map([()])) != [os.getpid()]
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes():
    with Processes(fail, 2) as processes:
        results = processes.map((number,) for number in (5, 1, 2, 4, 9, 7, 8))
        numbers, owners = zip(*results)
        assert numbers == (5, 1, 2, 4, 9, 7, 8) and os.getpid() not in owners
        with refuses(says='number 3'):
            list(processes.map((number,) for number in range(9)))
    assert [owner for _, owner in Processes(fail, 0).map([(1,), (2,)])] == [os.getpid()] * 2
    with Processes(die, 1) as processes, pytest.raises(InputError):
        list(processes.map([(1,)]))
    parent = [sys.executable, '-c', KILLED]  # its output ends with its last process
    assert subprocess.run(parent, stdout=subprocess.PIPE, timeout=60).returncode == -signal.SIGKILL


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
