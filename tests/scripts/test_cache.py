"""scripts/cache.py: what is kept below MXNET_HOME."""

import pytest
from script_runs import load_script, run


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.setenv('MXNET_HOME', str(tmp_path))
    folder = tmp_path / 'models'
    (folder / 'engines' / 'openvino').mkdir(parents=True)
    (folder / 'engines' / 'a.onnx').write_bytes(bytes(2_000_000))
    (folder / 'bert.params').write_bytes(bytes(1_000_000))
    return folder


def test_it_lists_kinds_and_removes_one(models, capsys):
    script = load_script('cache')
    assert not run(script)
    said = capsys.readouterr().out
    assert '2.0 MB' in said and '1.0 MB' in said
    assert not run(script, '--clear', 'engines')
    assert [path.name for path in models.iterdir()] == ['bert.params']
    assert not run(script, '--clear', 'all')
    assert not list(models.iterdir())


def test_an_empty_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'none'))
    assert not run(load_script('cache'), '--clear', 'all')
    assert '0.0 MB' in capsys.readouterr().out
