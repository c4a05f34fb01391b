"""The vectors of texts as files: JSON lines, or arrays."""

import array
import json
import zipfile

import numpy as np

from ...util.files import atomic_write

__all__ = ['Arrays', 'JsonLines']

CHUNK = 65536  # tokens written at once


class JsonLines:
    """Google's form: the records are lines of JSON, and the output is the records."""

    def __init__(self, layers, units, vocab):
        self._layers = layers

    def record(self, number, encoding, vectors):
        values = np.round(vectors.astype(np.float64), 6).tolist()
        features = [
            {
                'token': token,
                'layers': [
                    {'index': index, 'values': each} for index, each in zip(self._layers, row)
                ],
            }
            for token, row in zip(encoding.tokens, values)
        ]
        return (json.dumps({'linex_index': number, 'features': features}) + '\n').encode()

    def finish(self, partial):
        partial.publish()


class Arrays:
    """An .npz. A record has the tokens' numbers, int32, and their vectors, float32."""

    def __init__(self, layers, units, vocab):
        self._layers, self._tokens = layers, vocab.idx_to_token
        self._shape = len(layers), units

    def record(self, number, encoding, vectors):
        return encoding.input_ids.astype('<i4').tobytes() + vectors.astype('<f4').tobytes()

    def finish(self, partial):
        # an array in a file begins with its size
        counts = partial.sizes // (4 + 4 * int(np.prod(self._shape)))
        bounds = np.array([0, *np.cumsum(counts)], '<i8')
        ids = array.array('i')
        for count, record in zip(counts, partial):
            ids.extend(np.frombuffer(record, '<i4', count).tolist())
        width = max(len(self._tokens[number]) for number in set(ids))
        names = (
            np.array([self._tokens[number] for number in ids[start : start + CHUNK]], f'<U{width}')
            for start in range(0, len(ids), CHUNK)
        )
        values = (record[4 * count :] for count, record in zip(counts, partial))
        layers = np.array(self._layers, '<i4')
        with atomic_write(partial.path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
            _write_array(archive, 'layers', '<i4', layers.shape, [layers])
            _write_array(archive, 'bounds', '<i8', bounds.shape, [bounds])
            _write_array(archive, 'tokens', f'<U{width}', (len(ids),), names)
            _write_array(archive, 'values', '<f4', (len(ids), *self._shape), values)


def _write_array(archive, name, dtype, shape, parts):
    """Add an array to an .npz from the bytes of its parts."""
    header = {'descr': dtype, 'fortran_order': False, 'shape': shape}
    entry = zipfile.ZipInfo(f'{name}.npy')  # with a date of its own: the same at any time
    with archive.open(entry, 'w', force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(bytes(part))
