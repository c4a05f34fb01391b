"""Engines of a block: results in bfloat16, and libraries that are missing."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from halves import needs_bfloat16

from bert import (
    BertForPreTraining,
    BertForSequenceClassification,
    ModernBertForSequenceClassification,
)
from model_zoo.errors import MissingExtraError
from model_zoo.inference import make_engine, onnx_engine


@needs_bfloat16
@pytest.mark.parametrize('block_class', [BertForSequenceClassification, BertForPreTraining])
def test_results_in_bfloat16_are_those_of_the_block(block_class):
    block = tiny.make(block_class, 60)
    block.cast('bfloat16')
    random = np.random.RandomState(0)
    arrays = [random.randint(0, high, (3, 11)).astype('int32') for high in (60, 2)]
    lengths = np.array([11, 4, 7], 'int32')
    found = make_engine(block, 'mxnet', 'bfloat16').run(*arrays, lengths)
    wanted = block(*map(mx.nd.array, (*arrays, lengths)))
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other.asnumpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize('library', ['onnx', 'onnxruntime', 'sympy'])
@pytest.mark.parametrize('engine', ['onnxruntime', 'openvino'])
def test_a_missing_library_is_named(engine, library, without):
    without(library)
    with pytest.raises(MissingExtraError) as caught:
        make_engine(tiny.make(BertForSequenceClassification, 60), engine)
    assert library in str(caught.value)


@pytest.mark.parametrize('engine', ['onnxruntime', 'openvino'])
def test_short_texts_have_a_file_and_the_first_longer_one_makes_another(
    engine, tmp_path, monkeypatch
):
    pytest.importorskip(engine)
    monkeypatch.setenv('MXNET_HOME', str(tmp_path))
    block = tiny.make(ModernBertForSequenceClassification, 60, local_attention=8)
    runner, words = make_engine(block, engine), np.random.RandomState(0).randint(5, 60, (2, 24))
    for length, files in ((16, 1), (9, 1), (17, 2), (24, 2), (3, 2)):
        arrays = words[:, :length].astype('int32'), np.zeros((2, length), 'int32')
        lengths = np.array([length, 3], 'int32')
        wanted = block(*map(mx.nd.array, (*arrays, lengths))).asnumpy()
        np.testing.assert_allclose(runner.run(*arrays, lengths)[0], wanted, rtol=0, atol=1e-5)
        assert len(list(tmp_path.rglob('*.onnx'))) == files


def test_the_cache_of_engines(tmp_path, monkeypatch, caplog):
    """A damaged file is made anew; above the limit those that weren't used for longest go."""
    pytest.importorskip('onnxruntime')
    monkeypatch.setenv('MXNET_HOME', str(tmp_path))
    arrays = np.array([[2, 3, 4]], 'int32'), np.zeros((1, 3), 'int32'), np.array([3], 'int32')
    block = tiny.make(BertForSequenceClassification, 60)
    wanted = make_engine(block, 'onnxruntime').run(*arrays)[0]
    [path] = tmp_path.rglob('*.onnx')
    for damage in (path, path.with_name(f'{path.name}-SHA256SUMS')):
        damage.write_bytes(damage.read_bytes()[:-9] + b'\0' * 9)
        np.testing.assert_array_equal(make_engine(block, 'onnxruntime').run(*arrays)[0], wanted)
    assert caplog.text.count('made anew') == 2
    monkeypatch.setattr(onnx_engine, 'MOST_BYTES', path.stat().st_size * 3 // 2)
    make_engine(tiny.make(BertForSequenceClassification, 61), 'onnxruntime')
    assert len(list(tmp_path.rglob('*.onnx'))) == 1 and not path.exists()
