"""scripts/demo.py from end to end, and that it fails when the result is poor."""

import os

import pytest
from script_runs import ROOT, run_python


@pytest.mark.slow
@pytest.mark.weights
def test_demo(minilm_dir, tmp_path):
    argv = [ROOT / 'scripts' / 'demo.py', '--output_dir', 'out', '--epochs', 2]
    done = run_python(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ('A kitten is dozing in the sun.', 'label 0', 'label 1'):
        assert text in done.stdout
    for name in ('curves.png', 'results.json', 'exported/classification-symbol.json'):
        assert (tmp_path / 'out' / name).stat().st_size > 1000
        assert os.path.join('out', *name.split('/')) in done.stdout
