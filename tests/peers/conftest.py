"""What the comparisons with the originals share."""

import pytest
from script_runs import ROOT, load_script


@pytest.fixture(scope='module')
def oracle(request):
    """The script that a module names ORACLE: it makes the fixtures, and runs the original."""
    return load_script(request.module.ORACLE, ROOT / 'tests' / 'oracle')
