"""Files without an end in the place of texts and models."""

import os

import pytest

from model_zoo.checkpoint.tensor_files import read_params
from model_zoo.errors import CheckpointError, InputError
from model_zoo.tokenization.library_files import open_model
from model_zoo.util import reading


def test_a_line_has_a_length(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, '_LONGEST', 1000)
    path = tmp_path / 'x.txt'
    path.write_text('a' * 999 + '\n' + 'b' * 999 + '\nc')
    assert [len(line) for _, line in reading.read_lines(path)] == [1000, 1000, 1]
    path.write_text('a\n' + 'b' * 1001)
    with pytest.raises(InputError, match='line 2 has more than 1000 bytes'):
        list(reading.read_lines(path))
    monkeypatch.setenv('MODEL_ZOO_LIMITS', '10')
    assert len(list(reading.read_lines(path))) == 2


@pytest.mark.skipif(not os.path.exists('/dev/zero'), reason='no devices here')
def test_a_device_is_no_file(monkeypatch):
    monkeypatch.setattr(reading, '_LONGEST', 10**6)
    with pytest.raises(InputError, match='has more than 1000000 bytes'):
        reading.read_text('/dev/zero')
    with pytest.raises(CheckpointError, match='/dev/zero'):
        read_params('/dev/zero')
    with pytest.raises(InputError, match='it is not a regular file'):
        open_model('/dev/zero')
