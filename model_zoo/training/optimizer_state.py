"""The state of an optimizer as named arrays, and back."""

import mxnet as mx

from ..errors import CheckpointError

__all__ = ['load_optimizer', 'optimizer_tensors']


def _names(block, trainer):
    """(index in the trainer, structural name, parameter) of the trained parameters.

    Structural names, because Gluon's prefixes count the blocks made before in the same process.
    """
    names = {}
    for name, parameter in block._collect_params_with_prefix().items():
        names.setdefault(id(parameter), name)  # a shared parameter has several: take the first
    for index, parameter in enumerate(trainer._params):
        if parameter.grad_req != 'null':
            yield index, names.get(id(parameter), parameter.name), parameter


def _leaves(state, path=''):
    """Yield (path, NDArray) of an optimizer's state: None, an array, or tuples of these."""
    if isinstance(state, mx.nd.NDArray):
        yield path, state
    elif state is not None:
        for position, part in enumerate(state):
            yield from _leaves(part, f'{path}/{position}')


def optimizer_tensors(block, trainer):
    """The optimizer's state: name of a parameter and place -> array; and its update counts."""
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    updater = trainer._updaters[0]  # all devices have the same
    counts = {}
    for of_device in updater.optimizer._all_index_update_counts.values():
        counts.update(of_device)  # the same on all devices
    tensors, updates = {}, {}
    for index, name, _ in _names(block, trainer):
        for path, array in _leaves(updater.states.get(index)):
            tensors[name + path] = array.asnumpy()
        if index in counts:
            updates[name] = counts[index]
    return tensors, {'num_update': updater.optimizer.num_update, 'parameters': updates}


def load_optimizer(block, trainer, tensors, updates, source):
    """Load the result of `optimizer_tensors`; `source` is the file, for errors.

    Raises
    ------
    CheckpointError
        If that doesn't fit it.
    """
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    _check_updates(updates, source)
    optimizer = trainer._optimizer
    counts, used = {}, set()
    for index, name, parameter in _names(block, trainer):
        if name not in updates['parameters']:
            continue  # not updated yet
        counts[index] = updates['parameters'][name]
        for updater, ctx in zip(trainer._updaters, parameter.list_ctx()):
            state = optimizer.create_state_multi_precision(index, parameter.data(ctx))
            for path, array in _leaves(state):
                value = tensors.get(name + path)
                if value is None or value.shape != array.shape or value.dtype != array.dtype:
                    raise CheckpointError(
                        f'{source!r} does not fit the optimizer: {name + path} is missing, or of '
                        'another shape or type'
                    )
                array[:] = value
                used.add(name + path)
            updater.states[index] = state
            updater.states_synced[index] = True
    left = sorted(set(tensors) - used)
    if left:
        raise CheckpointError(f'{source!r} does not fit the optimizer: left over {left[:5]}')
    for updater in trainer._updaters:
        shared = updater.optimizer
        shared.num_update = updates['num_update']
        for device in {0, *(ctx.device_id for ctx in trainer._contexts)}:
            shared._all_index_update_counts[device] = dict(counts)
        shared._index_update_count = shared._all_index_update_counts[0]


def _check_updates(updates, source):
    """Raise CheckpointError unless these are counts of updates."""
    try:
        counts = [updates['num_update'], *updates['parameters'].values()]
    except (AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(f'{source!r} goes with no counts of updates: {error}') from error
    wrong = [count for count in counts if type(count) is not int or not 0 <= count < 2**31]
    if wrong:
        raise CheckpointError(f'{source!r} goes with {wrong[0]!r:.80} as a count of updates')
