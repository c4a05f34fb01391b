"""model_zoo.training.PartialOutput."""

import json
import pathlib
import resource

import pytest

from model_zoo.errors import CheckpointError, InputError
from model_zoo.training import Interrupted, PartialOutput, StopRequested

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


def folders_of(path):
    return list(pathlib.Path(path).parent.glob('*.part*'))


def test_goes_on(left, path):
    with PartialOutput(path, JOB, resume=True) as partial:
        assert partial.count == 3 and partial.sizes.tolist() == [3, 5, 1]
        partial.append(b'last')
        assert list(partial) == [b'one', b'three', b'x', b'last']
        partial.publish()
    assert pathlib.Path(path).read_bytes() == b'onethreexlast'
    assert not folders_of(path)


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


def test_another_job(left, path):
    with pytest.raises(InputError, match=r'--layers is \[-1\] and was \[-1, -2\]'):
        PartialOutput(path, {**JOB, 'layers': [-1]}, resume=True).__enter__()
    with PartialOutput(path, JOB, resume=True) as partial:  # nothing was lost
        assert partial.count == 3


def test_is_replaced_without_resume(left, path, caplog):
    other = {**JOB, 'layers': [-1]}
    with PartialOutput(path, other) as partial:
        assert partial.count == 0
        partial.append(b'a')
    assert 'is replaced' in caplog.text
    with PartialOutput(path, other, resume=True) as partial:
        assert list(partial) == [b'a']


def test_nothing_to_resume(path, caplog):
    with PartialOutput(path, JOB, resume=True) as partial:
        assert partial.count == 0
    assert 'nothing to resume' in caplog.text
    assert not folders_of(path)  # as it has no record


def test_interruption(path):
    with pytest.raises(Interrupted, match='nothing was finished'), PartialOutput(path, JOB):
        raise StopRequested
    message = r'out.part; run the same command with --resume'
    with pytest.raises(Interrupted, match=message), PartialOutput(path, JOB) as partial:
        partial.append(b'a')
        raise StopRequested


def test_two_runs_at_once(path):
    with PartialOutput(path, JOB) as partial:
        partial.append(b'a')
        for resume in (False, True):
            with pytest.raises(InputError, match='another run is writing'):
                PartialOutput(path, JOB, resume).__enter__()
    with PartialOutput(path, JOB, resume=True) as partial:
        assert partial.count == 1


def test_full_disk(path):
    """A record that doesn't fit ends the run; those before it are there."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    message = 'cannot write .*: .*; what is finished stays in .*out.part, and --resume'
    with PartialOutput(path, JOB) as partial:
        partial.append(b'b' * 1000)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
            with pytest.raises(InputError, match=message):
                partial.append(b'a' * 1000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with PartialOutput(path, JOB, resume=True) as partial:
        assert list(partial) == [b'b' * 1000]


def test_folder_that_is_missing(tmp_path):
    with pytest.raises(InputError, match='cannot write .*No such file'):
        PartialOutput(str(tmp_path / 'no' / 'out'), JOB).__enter__()


def test_damaged_job(left, path):
    (left / 'job.json').write_text('[1')
    with pytest.raises(CheckpointError, match='is damaged'):
        PartialOutput(path, JOB, resume=True).__enter__()
    with PartialOutput(path, JOB) as partial:
        assert partial.count == 0 and len(partial.sizes) == 0
        partial.append(b'a')
    assert json.loads((left / 'job.json').read_text())['input_file'] == '3 lines'
