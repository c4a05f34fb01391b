"""What the comparisons with the originals share."""

import os
import pathlib

import pytest
from script_runs import ROOT, load_script

#: what a variable of the environment names, which is no part of this project
CHECKOUTS = {
    'ZOO_GLUONNLP': 'a checkout of GluonNLP 0.10',
    'ZOO_ORIGINAL_TESTS': "the folder of pytorch-pretrained-bert 0.6.2's tests",
}
ORACLES = ROOT / 'tests' / 'oracle'


@pytest.fixture(scope='module')
def oracle(request):
    """The script that a module names ORACLE: it makes the fixtures, and runs the original."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ORACLES)
        return load_script(request.module.ORACLE, ORACLES)


@pytest.fixture(scope='module')
def checkout(request):
    """The folder that the variable a module names CHECKOUT has, or the test is skipped."""
    variable = request.module.CHECKOUT
    if not os.environ.get(variable):
        pytest.skip(f'set {variable} to {CHECKOUTS[variable]}')
    return pathlib.Path(os.environ[variable])
