"""Which layers stay in float32: the fewest of the most harmful ones."""

import pytest

from model_zoo.inference.quantization import leave_out

LAYERS = [f'layer{number}' for number in range(12)]


@pytest.mark.parametrize('needed', [0, 1, 2, 3, 5, 6, 11, 12])
def test_the_fewest_are_left_out(needed):
    harms = {name: (7 * number) % 12 for number, name in enumerate(LAYERS)}
    worst = sorted(LAYERS, key=harms.get, reverse=True)
    measured, tried = [], []

    def harm(layer):
        measured.append(layer)
        return harms[layer]

    def attempt(exclude):
        tried.append(list(exclude))
        return set(exclude)

    result, exclude = leave_out(LAYERS, harm, attempt, set(worst[:needed]).issubset)
    assert exclude == worst[:needed] and result == set(exclude)
    assert len(measured) == (len(LAYERS) if needed else 0)
    assert len(tried) <= 9


def test_nothing_helps():
    result, exclude = leave_out(LAYERS, len, lambda exclude: len(exclude), lambda result: False)
    assert result == len(exclude) == len(LAYERS)
