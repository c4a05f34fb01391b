"""An exported model as a function."""

import os

import mxnet as mx

from ..checkpoint import read_tensors
from ..checkpoint.params import check_graph
from ..checkpoint.sums import check_sums, sums_path
from ..errors import CheckpointError, InputError

__all__ = ['load_exported']


def load_exported(prefix, max_len, ctx, flag='max_len'):
    """Load ``PREFIX-symbol.json`` and ``PREFIX-0000.params`` with the inputs data0, data1, data2.

    A model without token types has only data0 and data1.

    Parameters
    ----------
    prefix : str
        Of the two files.
    max_len : int
        The longest input that it must accept.
    ctx : mx.Context
    flag : str
        The flag that sets `max_len`, for the message.

    Returns
    -------
    callable
        Takes words, token types and valid length; hybridized.
    """
    symbol, parameters = f'{prefix}-symbol.json', f'{prefix}-0000.params'
    for path in (symbol, parameters):
        if not os.path.isfile(path):
            raise InputError(f'--model_prefix {prefix!r}: there is no file {path!r}')
    tensors, _ = read_tensors(parameters)  # says clearly what MXNet wouldn't of a damaged file
    for name, array in tensors.items():
        if name.endswith('position_weight') and max_len > len(array):
            raise InputError(
                f'--{flag} {max_len}: the exported model takes {len(array)} tokens at most'
            )
    check_sums(sums_path(symbol))
    check_graph(symbol)
    try:
        known = mx.sym.load(symbol).list_arguments()
        names = ['data0', 'data1', *(['data2'] if 'data2' in known else [])]
        block = mx.gluon.SymbolBlock.imports(symbol, names, parameters, ctx)
    except (mx.MXNetError, ValueError, AssertionError, RuntimeError) as error:
        reason = str(error).strip().splitlines()
        raise CheckpointError(
            f'cannot load {symbol!r}: {reason[-1] if reason else error!r}'
        ) from error
    block.hybridize(static_alloc=True)
    if len(names) == 3:
        return block
    return lambda words, token_types, valid_length: block(words, valid_length)
