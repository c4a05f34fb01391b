"""An error of the user's in a notebook: the user's line and the message, and no more."""

import pytest
from script_runs import run_python

pytest.importorskip('IPython')

CELL = """
from model_zoo.errors import UnknownNameError
def choose(name):
    UnknownNameError.check('fruit', name, ['apple', 'pear'])
choose('appel')
"""


def test_one_frame_and_the_message(tmp_path):
    words = ['-m', 'IPython', '--colors=NoColor', '--no-banner', '-c', CELL]
    found = run_python(*words, env={'PATH': '', 'IPYTHONDIR': str(tmp_path)})
    shown = (found.stdout + found.stderr).strip().splitlines()
    assert shown[0].startswith('File ') and 'in choose' in shown[0]
    assert [line.strip() for line in shown[1:]] == [
        "UnknownNameError.check('fruit', name, ['apple', 'pear'])",
        "UnknownNameError: unknown fruit 'appel'; did you mean apple? known: apple, pear",
    ]
