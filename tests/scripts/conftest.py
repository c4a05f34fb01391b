"""What a module says by ``CASE = 'finetune_swag'``: its script, data and a training's output."""

import pytest
from contract import CASES, Toy


@pytest.fixture(scope='session')
def toys(tmp_path_factory):
    """Name of a case -> its Toy."""
    made = {}

    def toy(name):
        for extra in CASES[name].extras:
            pytest.importorskip(extra)
        if name not in made:
            made[name] = Toy(CASES[name], tmp_path_factory.mktemp(name.replace(' ', '_')))
        return made[name]

    return toy


@pytest.fixture(scope='module')
def toy(toys, request):
    return toys(request.module.CASE)


@pytest.fixture(scope='module')
def script(toy):
    return toy.script


@pytest.fixture(scope='module')
def data(toy):
    return toy.data


@pytest.fixture(scope='module')
def trained(toy):
    return toy.trained
