"""model_zoo.app.PartialOutput."""

import json
import logging
import os
import pathlib
import resource

import pytest

from model_zoo.app.job import PartialOutput
from model_zoo.errors import CheckpointError, InputError
from model_zoo.training.loop import Interrupted, StopRequested

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
        partial.remove()
    assert pathlib.Path(path).read_bytes() == b'onethreexlast'
    assert not folders_of(path)


def test_publishing_can_be_resumed(left, path):
    """The run may end between the output and what is written about it."""
    pathlib.Path(path).write_bytes(b'of before')
    with pytest.raises(RuntimeError), PartialOutput(path, JOB, resume=True) as partial:
        partial.publish()
        raise RuntimeError
    assert pathlib.Path(path).read_bytes() == b'onethreex'
    with PartialOutput(path, JOB, resume=True) as partial:
        assert list(partial) == [b'one', b'three', b'x']
        partial.publish()
        partial.remove()
    assert pathlib.Path(path).read_bytes() == b'onethreex' and not folders_of(path)


def test_another_output_is_not_taken_for_the_records(left, path):
    (left / 'records').unlink()
    pathlib.Path(path).write_bytes(b'longer than they')
    with PartialOutput(path, JOB, resume=True) as partial:
        assert partial.count == 0
    assert pathlib.Path(path).read_bytes() == b'longer than they'


def finish(path, job, results):
    pathlib.Path(path).write_text('output')
    pathlib.Path(results).write_text(json.dumps({'lines': 1, 'job': job}))


def test_complete_output(path, caplog):
    results = f'{path}.json'
    assert not PartialOutput(path, JOB, True, results).is_complete()
    finish(path, JOB, results)
    with caplog.at_level(logging.INFO):
        assert PartialOutput(path, JOB, True, results).is_complete()
    assert f'{path} is already complete' in caplog.text
    assert not folders_of(path)
    with pytest.raises(InputError, match=r'`layers` is \[-1\] and was .* or leave `resume` out to'):
        PartialOutput(path, {**JOB, 'layers': [-1]}, True, results).is_complete()
    assert not PartialOutput(path, JOB, False, results).is_complete()
    os.remove(path)
    assert not PartialOutput(path, JOB, True, results).is_complete()


@pytest.mark.parametrize('content', ['{', '[]', '{"lines": 1}', '{"job": 1}', None])
def test_output_that_does_not_say_its_job(path, content):
    pathlib.Path(path).write_text('output')
    if content is not None:
        pathlib.Path(f'{path}.json').write_text(content)
    assert not PartialOutput(path, JOB, True, f'{path}.json').is_complete()


def test_what_is_left_counts_before_what_is_complete(left, path):
    finish(path, {**JOB, 'layers': [-1]}, f'{path}.json')
    assert not PartialOutput(path, JOB, True, f'{path}.json').is_complete()


def test_output_must_be_a_file(tmp_path):
    (tmp_path / 'folder').mkdir()
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'link').symlink_to('pipe')
    for name, message in [
        ('folder', 'it is a folder'),
        ('pipe', 'it is not a regular file'),
        ('link', 'it is not a regular file'),
    ]:
        path = f'{tmp_path}/{name}'
        with pytest.raises(InputError, match=f'cannot write .*{message}; give'):
            PartialOutput(path, JOB)
    assert sorted(each.name for each in tmp_path.iterdir()) == ['folder', 'link', 'pipe']


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


def test_another_job(left, path):
    message = r'`layers` is \[-1\] and was \[-1, -2\]; give the same value, or remove .*out.part'
    with pytest.raises(InputError, match=message):
        PartialOutput(path, {**JOB, 'layers': [-1]}, resume=True).__enter__()
    with PartialOutput(path, JOB, resume=True) as partial:  # nothing was lost
        assert partial.count == 3


@pytest.mark.parametrize('job', [JOB, {**JOB, 'layers': [-1]}])
def test_is_refused_without_resume(left, path, job):
    with pytest.raises(InputError, match=r'out.part.*: add --resume .* or remove that folder to'):
        PartialOutput(path, job).__enter__()
    with PartialOutput(path, JOB, resume=True) as partial:  # nothing was lost
        assert partial.count == 3


def test_is_replaced_where_nothing_was_finished(left, path):
    (left / 'ends').write_bytes(b'')
    other = {**JOB, 'layers': [-1]}
    with PartialOutput(path, other) as partial:
        assert partial.count == 0
        partial.append(b'a')
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
    message = r'out.part; the same command with --resume'
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
    assert (left / 'records').read_bytes() == b'onethreex'


def test_files_of_others_stay(path):
    """A folder of this name may be there already."""
    os.mkdir(f'{path}.part')
    with open(f'{path}.part/thesis', 'w') as file:
        file.write('x')
    finish(path, JOB, f'{path}.json')
    assert os.listdir(f'{path}.part') == ['thesis']
