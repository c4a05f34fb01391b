"""The private names of MXNet 1.9.1, Gluon and GluonNLP 0.10 that are used here, and what for.

This is what must be read when one of them is patched. Where an attribute must be used in place, it
is only listed:

- Gluon calls ``_clear_cached_op`` and ``_call_cached_op``, which blocks override to have several
  graphs, one thread at a time (`blocks.graphs`, `blocks.stepwise`, `layers.graphs`). ``_active``
  and ``_flags`` say whether a block is hybridized, and how.
- Gluon's files are made by ``_collect_params_with_prefix``, and by ``_reduce`` and ``_load_init``
  of the parameters; `blocks.weights` has parts of fused parameters that answer to these.
- ``_reg_params`` are a layer's own parameters, whose list `layers.attention` goes through.
- A Trainer's ``_params``, ``_optimizer``, ``_updaters``, ``_scale`` and its key-value store, and an
  array's ``_fresh_grad``, are read and set by `training.updater` and `training.checkpoint`.
- ``mxnet.base._LIB`` is MXNet's library in C: `environment` sets its threads, and `optimizer.host`
  reads the address of an array.
"""

import gluonnlp
import mxnet as mx
from mxnet.gluon.model_zoo import model_store

#: returns the inputs of a call as a list, and the form in which they were nested
flatten = mx.gluon.block._flatten
#: what GluonNLP's repository has: a model -> sha1; a vocabulary -> sha1, extension, roles
WEIGHTS_TABLE, VOCABULARY_TABLE = model_store._model_sha1, gluonnlp.data.utils._vocab_sha1
#: attributes of a hybridized block that are its graph -> their values before there is one
GRAPH = {'_cached_graph': (), '_cached_op_args': (), '_cached_op': None}
GRAPH.update(_in_format=None, _out_format=None)


def own_names(block, prefix=''):
    """Return Gluon's names of a block's parameters, by the attributes alone."""
    result = {prefix + name: parameter for name, parameter in block._reg_params.items()}
    for name, child in block._children.items():
        result.update(own_names(child, f'{prefix}{name}.'))
    return result


def contexts_of(*parameters):
    """Return the contexts of parameters, each once; none if one isn't initialized."""
    try:
        return [*dict.fromkeys(ctx for parameter in parameters for ctx in parameter.list_ctx())]
    except RuntimeError:
        return []


def write_slice(array, part, begin, end):
    """Write `part` to a slice of `array`, without the copy that an assignment makes."""
    mx.nd._internal._slice_assign(array, part, begin=begin, end=end, out=array)
