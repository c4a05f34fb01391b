"""Pictures that are drawn once: one takes as long as some updates of a tiny model."""

import io

import pytest
from matplotlib.figure import Figure

_draw, _drawn = Figure.savefig, {}


def _savefig(figure, file, **options):
    """Write the first picture that had these axes; tests of what is in it don't use this."""
    kind = tuple((axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes)
    if kind not in _drawn:
        _draw(figure, content := io.BytesIO(), **options)
        _drawn[kind] = content.getvalue()
    file.write(_drawn[kind])


@pytest.fixture(autouse=True)
def pictures_once(monkeypatch):
    """Scripts that run in this process draw each kind of picture once."""
    monkeypatch.setattr(Figure, 'savefig', _savefig)
