"""A tiny BERT that trainings here begin with."""

import pytest
import tiny


@pytest.fixture(scope='package')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tiny') / 'model'
    tiny.save_bert(folder, 'abcdefgh')
    return str(folder)
