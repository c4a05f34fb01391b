"""A symbol and its parameters as the two files that MXNet reads."""

import mxnet as mx

from model_zoo.checkpoint.params import write_params
from model_zoo.errors import InputError

__all__ = ['parameters_of', 'write_symbol']


def parameters_of(block):
    """A block's parameters as NumPy arrays, by their names."""
    return {
        each.name: each.data(each.list_ctx()[0]).asnumpy()
        for each in block.collect_params().values()
    }


def write_symbol(symbol, parameters, symbol_path, params_path):
    """Write the files.

    Parameters
    ----------
    symbol : mxnet.symbol.Symbol
    parameters : dict of str to numpy.ndarray
        Those that the symbol doesn't use are left out.
    symbol_path, params_path : str

    Raises
    ------
    InputError
        If a file can't be written.
    """
    try:
        symbol.save(symbol_path, remove_amp_cast=False)  # they are what bfloat16 is made of
    except mx.MXNetError as error:
        raise InputError(
            f'cannot write {symbol_path!r}: {str(error).strip().splitlines()[-1]}'
        ) from error
    used = set(symbol.list_arguments())  # a pooler that no output depends on isn't among them
    tensors = {f'arg:{name}': array for name, array in parameters.items() if name in used}
    write_params(params_path, tensors)
