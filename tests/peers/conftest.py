"""What the comparisons with the originals share."""

import pytest
from script_runs import ROOT, load_script

ORACLES = ROOT / 'tests' / 'oracle'


@pytest.fixture(scope='module')
def oracle(request):
    """The script that a module names ORACLE: it makes the fixtures, and runs the original."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ORACLES)
        return load_script(request.module.ORACLE, ORACLES)
