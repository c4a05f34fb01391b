"""The half precisions, for tests; what this CPU cannot compute in is skipped."""

import mxnet as mx
import pytest

from model_zoo.layers.precision import BFLOAT16


def _has_bfloat16():
    one = mx.nd.ones((1, 1)).astype(BFLOAT16)
    try:
        mx.nd.FullyConnected(one, one, no_bias=True, num_hidden=1).wait_to_read()
    except mx.MXNetError:
        return False
    return True


needs_bfloat16 = pytest.mark.skipif(not _has_bfloat16(), reason='bfloat16 needs AVX-512')
HALVES = ['float16', pytest.param('bfloat16', marks=needs_bfloat16)]
