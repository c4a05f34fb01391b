"""Which block of a family a checkpoint belongs to, where nothing but its tensors says it."""

from ..blocks.block import ZooBlock
from ..errors import CheckpointError, UnknownNameError
from .readers import read_tensors

__all__ = ['fit_block']


def fit_block(family, path, config, name=None):
    """Make the block that has a place for a checkpoint's tensors, and a tensor for each parameter.

    Parameters
    ----------
    family : module
        Of the family, such as ``import bert``; its blocks are those of its ``__all__``.
    path : str
        Of the file of weights.
    config : Config
    name : str, optional
        Name of the block's class. By default the one that the file or the configuration names;
        else the one that leaves the fewest tensors over.

    Returns
    -------
    block : ZooBlock
        With the weights, on the CPU.
    options : dict
        The arguments, besides `config`, that the block was made with.
    unused : list of str
        Names of tensors that it has no place for.

    Raises
    ------
    UnknownNameError
        If the family has no class of this name.
    CheckpointError
        If the file can't be read, or lacks parameters of the block, or of every block.
    """
    tensors, metadata = read_tensors(path)
    blocks = [getattr(family, each) for each in family.__all__]
    blocks = {
        each.__name__: each
        for each in blocks
        if isinstance(each, type) and issubclass(each, ZooBlock)
    }
    if name is not None and name not in blocks:
        raise UnknownNameError.of(f'block of {family.__name__}', name, blocks)
    named = [name] if name else [metadata.get('class'), *config.extras.get('architectures', [])]
    wanted = [blocks[each] for each in named if each in blocks] or list(blocks.values())
    try:
        fitting = [_try(each, tensors, metadata, config) for each in wanted]
    except CheckpointError as error:
        raise CheckpointError(f'{path}: {error}') from error
    missing, unused, block, options = min(fitting, key=lambda found: [len(x) for x in found[:2]])
    if missing:
        names = ', '.join(name.lstrip('^') for name in missing[:20])
        raise CheckpointError(f'{path} lacks parameters of a {type(block).__name__}: {names}')
    block.load_parameters(path, ignore_extra=True, cast_dtype=True)
    return block, options, unused


def _try(block_class, tensors, metadata, config):
    """(names that are missing, names left over, block, its options) for one class."""
    block = block_class(config)
    found, unknown = block.translate(tensors, metadata)
    options = {}
    if block_class.backbone is None:  # it is made of the parts that there are
        options = {
            f'use_{part}': any(name.startswith(f'{part}.') for name in found)
            for part in block_class.optional_parts
        }
        block = block_class(config, **options)
    own = block._own_parameters()
    missing = [name for name in own if name not in found]
    return missing, unknown + [name for name in found if name not in own], block, options
