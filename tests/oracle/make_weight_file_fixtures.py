"""Writes tests/fixtures/{torch,tensorflow}_files: what these programs make of tensors of all kinds.

Run it in the environment of ``make peers``: ``python tests/oracle/make_weight_file_fixtures.py``.
"""

import numpy as np
import tensorflow
import torch
from oracle_files import FIXTURES


def write_torch(folder):
    """Both of its formats, with shared storages, strides, and a dict within the dict."""
    torch.manual_seed(0)
    whole = torch.randn(3, 4)
    tensors = {
        'whole': whole,
        'tied': whole,
        'transposed': whole.t(),
        'window': whole[1:, ::2],
        'half': whole.half(),
        'brain': whole.bfloat16()[1],
        'ids': torch.arange(5).expand(1, 5),
        'mask': whole > 0,
        'scalar': torch.tensor(2.5),
    }
    for name, zipped in [('zip', True), ('stream', False)]:
        content = {'epoch': 2, 'model': tensors}
        torch.save(content, folder / f'{name}.pt', _use_new_zipfile_serialization=zipped)
    halves = (torch.float16, torch.bfloat16)
    arrays = {
        name: (tensor.float() if tensor.dtype in halves else tensor).numpy()
        for name, tensor in tensors.items()
    }
    np.savez(folder / 'expected.npz', **arrays)


def write_tensorflow(folder):
    """Two checkpoints merged into one with two files of data, a variable in parts among them."""
    random = np.random.RandomState(0)
    whole = random.randn(3, 200).astype('float32')
    first = {
        'bert/whole': whole,
        'half': whole[0].astype('float16'),
        'step': np.int64(7),
        'mask': whole > 0,
        'nothing': np.zeros((0, 3), 'float32'),
    }
    second = {f'layer_{n}/kernel': random.randn(2, n).astype('float32') for n in range(1, 60)}
    brain = tensorflow.cast(whole[1], tensorflow.bfloat16)
    table = random.randn(150, 4).astype('float64')
    prefixes = [str(folder / f'part_{n}') for n in range(2)]
    raw = tensorflow.raw_ops
    raw.SaveV2(
        prefix=prefixes[0],
        tensor_names=[*first, 'table', 'text'],
        shape_and_slices=[''] * len(first) + ['150 4 0,100:-', ''],
        tensors=[*map(tensorflow.constant, first.values()), table[:100], 'no weight'],
    )
    raw.SaveV2(
        prefix=prefixes[1],
        tensor_names=[*second, 'table', 'brain'],
        shape_and_slices=[''] * len(second) + ['150 4 100,50:-', ''],
        tensors=[*map(tensorflow.constant, second.values()), table[100:], brain],
    )
    raw.MergeV2Checkpoints(
        checkpoint_prefixes=prefixes,
        destination_prefix=str(folder / 'model.ckpt'),
        delete_old_dirs=False,
    )
    reader = tensorflow.train.load_checkpoint(str(folder / 'model.ckpt'))
    names = [name for name in reader.get_variable_to_shape_map() if name != 'text']
    arrays = {name: np.asarray(reader.get_tensor(name)) for name in names}
    for name in ('half', 'brain'):
        arrays[name] = arrays[name].astype('float32')
    np.savez(folder / 'expected.npz', **arrays)


if __name__ == '__main__':
    for write in (write_torch, write_tensorflow):
        target = FIXTURES / f'{write.__name__[6:]}_files'
        target.mkdir(exist_ok=True)
        write(target)
