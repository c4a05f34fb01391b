"""scripts/demo.py from end to end, and that it fails when the result is poor."""

import json
import os

import pytest
import warm
from script_runs import ROOT, load_script


@pytest.fixture
def demo():
    return load_script('demo')


@pytest.mark.slow
@pytest.mark.weights
def test_demo(minilm_dir, tmp_path):
    argv = [ROOT / 'scripts' / 'demo.py', '--output_dir', 'out', '--epochs', 2]
    done = warm.run(argv, tmp_path, {**os.environ, 'PYTHONPATH': str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ('A kitten is dozing in the sun.', 'label 0', 'label 1'):
        assert text in done.stdout
    for name in ('curves.png', 'results.json', 'exported/classification-symbol.json'):
        assert (tmp_path / 'out' / name).stat().st_size > 1000
        assert os.path.join('out', *name.split('/')) in done.stdout


@pytest.mark.parametrize('accuracy, good', [(0.69, False), (0.71, True)])
def test_must_beat_the_commonest_label(demo, monkeypatch, tmp_path, accuracy, good, capsys):
    assert demo.majority_share() == 44 / 80
    monkeypatch.setattr(demo, 'embed', lambda: None)
    monkeypatch.setattr(demo, 'run', lambda *args: None)
    (tmp_path / 'results.json').write_text(json.dumps({'best': {'dev': {'accuracy': accuracy}}}))
    for name in ('best_model', 'exported'):
        (tmp_path / name).mkdir()
    for name in ('curves.png', 'exported/classification-symbol.json'):
        (tmp_path / name).touch()
    if good:
        demo.main(['--output_dir', str(tmp_path)])
    else:
        with pytest.raises(demo.DemoError):
            demo.main(['--output_dir', str(tmp_path)])
    assert f'{accuracy:.3f}' in capsys.readouterr().out
