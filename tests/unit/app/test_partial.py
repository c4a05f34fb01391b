"""model_zoo.app.PartialOutput."""

import os
import pathlib
import resource

import pytest

from model_zoo.app.job import PartialOutput
from model_zoo.errors import CheckpointError, InputError

JOB = {'layers': (-1, -2), 'input_file': '3 lines'}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / 'out')


@pytest.fixture
def left(path):
    """What a run that ended after three records has left."""
    with pytest.raises(RuntimeError), PartialOutput(path, JOB) as partial:
        for record in (b'one', b'three', b'x'):
            partial.append(record)
        raise RuntimeError
    return pathlib.Path(partial.folder)


@pytest.mark.parametrize('there', [False, True])
def test_a_link_stays_and_its_target_is_written(tmp_path, there):
    (tmp_path / 'disk').mkdir()
    target, link = tmp_path / 'disk' / 'target', tmp_path / 'link'
    link.symlink_to('disk/target')
    if there:
        target.write_text('old')
    with PartialOutput(str(link), JOB) as partial:
        partial.append(b'new')
        assert os.path.dirname(partial.folder) == str(tmp_path / 'disk')
        partial.publish()
        partial.remove()
    assert link.is_symlink() and target.read_text() == 'new' and not target.is_symlink()


def cut(path, size):
    with open(path, 'rb+') as file:
        file.truncate(size)


@pytest.mark.parametrize(
    ('torn', 'count'), [('records', 1), ('ends', 2), ('both', 1), ('zeros', 1), ('behind', 3)]
)
def test_torn_records_are_dropped(left, path, torn, count):
    """As a killed process or machine may leave them."""
    if torn in ('records', 'both'):
        cut(left / 'records', 7)
    if torn in ('ends', 'both'):
        cut(left / 'ends', 8 * 3 - 1)
    if torn == 'zeros':  # a file's size may be there before its content
        with open(left / 'ends', 'rb+') as file:
            file.seek(8)
            file.write(bytes(16))
    if torn == 'behind':
        with open(left / 'records', 'ab') as file:
            file.write(b'of the next')
    with PartialOutput(path, JOB, resume=True) as partial:
        assert partial.count == count
        partial.append(b'new')
    with PartialOutput(path, JOB, resume=True) as partial:
        assert list(partial) == [b'one', b'three', b'x'][:count] + [b'new']


def test_is_replaced_where_nothing_was_finished(left, path):
    (left / 'ends').write_bytes(b'')
    other = {**JOB, 'layers': [-1]}
    with PartialOutput(path, other) as partial:
        assert partial.count == 0
        partial.append(b'a')
    with PartialOutput(path, other, resume=True) as partial:
        assert list(partial) == [b'a']


def test_two_runs_at_once(path):
    with PartialOutput(path, JOB) as partial:
        partial.append(b'a')
        for resume in (False, True):
            with pytest.raises(InputError):
                PartialOutput(path, JOB, resume).__enter__()
    with PartialOutput(path, JOB, resume=True) as partial:
        assert partial.count == 1


def test_full_disk(path):
    """A record that doesn't fit ends the run; those before it are there."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with PartialOutput(path, JOB) as partial:
        partial.append(b'b' * 1000)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
            with pytest.raises(InputError):
                partial.append(b'a' * 1000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with PartialOutput(path, JOB, resume=True) as partial:
        assert list(partial) == [b'b' * 1000]


def test_damaged_job(left, path):
    (left / 'job.json').write_text('[1')
    with pytest.raises(CheckpointError):
        PartialOutput(path, JOB, resume=True).__enter__()
    assert (left / 'records').read_bytes() == b'onethreex'
