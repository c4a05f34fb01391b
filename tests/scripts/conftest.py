"""The script that a module names; by ``CASE = 'finetune_swag'`` its data and a training, too."""

import pytest
from bad_input import BAD_INPUT
from contract import CASES, Toy
from pictures import pictures_once  # noqa: F401  a fixture for all tests here
from script_runs import load_script


@pytest.fixture(scope='session')
def toys(tmp_path_factory):
    """Name of a case -> its Toy."""
    made = {}

    def toy(name):
        for extra in CASES[name].extras:
            pytest.importorskip(extra)
        if name not in made:
            made[name] = Toy(name, tmp_path_factory.mktemp(name.replace(' ', '_')))
        return made[name]

    return toy


@pytest.fixture(scope='session')
def worlds(toys, tmp_path_factory):
    """Name of a case of bad input -> the folder of its data."""
    made = {}

    def world(name):
        case = BAD_INPUT[name]
        if case.toy:
            return toys(case.toy).data
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            case.write(made[name])
        return made[name]

    return world


@pytest.fixture(scope='module')
def toy(toys, request):
    return toys(request.module.CASE)


@pytest.fixture(scope='module')
def script(request):
    """The script of the module's CASE, or the module's SCRIPT."""
    if hasattr(request.module, 'CASE'):
        return request.getfixturevalue('toy').script
    return load_script(request.module.SCRIPT.stem)


@pytest.fixture(scope='module')
def data(toy):
    return toy.data


@pytest.fixture(scope='module')
def trained(toy):
    return toy.trained
