"""Transformer-XL against pytorch-pretrained-bert and transformers themselves."""

import importlib.util
import pathlib

import mxnet as mx
import numpy as np
import pytest
from transfo_xl_compare import (
    VARIANTS,
    assert_same,
    assert_same_memories,
    make_block,
    make_config,
    make_inputs,
    run,
)

torch = pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = pytest.mark.peers


@pytest.fixture(scope='module')
def oracle():
    """The script that makes the fixtures; it runs the original."""
    path = pathlib.Path(__file__).parent.parent / 'oracle' / 'make_transfo_xl_fixtures.py'
    spec = importlib.util.spec_from_file_location('make_transfo_xl_fixtures', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('hybridized', [False, True])
@pytest.mark.parametrize('variant', VARIANTS)
def test_three_segments(oracle, tmp_path, variant, hybridized):
    """Scores, losses and memories within 1e-5, gradients of each parameter within 1e-4."""
    config = make_config(variant)
    model = oracle.make_model(config, seed=7)
    block = make_block(oracle.state_of(model), tmp_path, config)
    if hybridized:
        block.hybridize(static_alloc=True, static_shape=True)
    for seed, (batch, lengths) in enumerate([(3, (5, 4, 5)), (1, (8, 1, 3)), (2, (2, 9, 2))]):
        segments = make_inputs(config, seed, batch, lengths)
        ours = run(block, segments)
        assert_same(ours, oracle.run_model(model, segments))
