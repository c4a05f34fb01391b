"""A file of texts, and their vectors in a file beside it."""

import contextlib
import glob
import hashlib
import json
import logging
import os
import tempfile

import numpy as np

from ..errors import InputError
from ..util.display import counted
from ..util.files import atomic_write
from ..util.lines import read_json_lines, read_lines
from .use import read_file

__all__ = ['Corpus']

logger = logging.getLogger(__name__)


class Corpus:
    """Texts of a file, which is read through as often as it's needed."""

    def __init__(self, path, field='text'):
        self.path, self._field = path, field
        first = next((line for _, line in read_lines(path) if line.strip()), None)
        if first is None:
            raise InputError(f'{path!r} is empty: give a file with one text per line')
        self._is_json = first.lstrip().startswith('{')

    def __iter__(self):
        if self.path.lower().endswith(('.csv', '.tsv')):
            column = None if self._field == 'text' else self._field  # else one of the usual names
            for number, text, _ in read_file(self.path, column, flag='--text_field'):
                yield number, text
            return
        if self._is_json:
            for number, fields in read_json_lines(self.path):
                yield number, self._text(number, fields)
            return
        for number, line in read_lines(self.path):
            if line.strip():
                yield number, line.rstrip('\r\n')

    def _text(self, number, fields):
        text = fields.get(self._field)
        if not isinstance(text, str):
            raise InputError(
                f'{self.path}, line {number}: not a JSON object with the text in '
                f'{json.dumps(self._field)}: {fields!r:.80}'
            )
        return text

    def texts_at(self, places):
        """Place -> (line, text) of some of the texts."""
        wanted = set(places)
        return {place: each for place, each in enumerate(self) if place in wanted}

    def vectors(self, embed, settings, keeps=True):
        """The texts' vectors, taken from the file beside the corpus if that has them."""
        digest, count = self._digest()
        model = hashlib.blake2b(json.dumps(settings).encode(), digest_size=6).hexdigest()
        path = f'{self.path}.{model}-{digest}.npy'
        if keeps and os.path.exists(path):
            with contextlib.suppress(Exception):  # Python's parser reads a damaged header
                found = np.load(path, mmap_mode='r')
                if found.ndim == 2 and len(found) == count and found.dtype == np.float32:
                    logger.info('the vectors are those of %s', path)
                    return found
        with counted('texts', count) as on_batch:
            if keeps:
                try:
                    return self._write(path, embed(self._texts(), on_batch), count, model)
                except InputError as error:
                    logger.warning('the vectors are not kept: %s', error)
            with tempfile.TemporaryFile() as file:
                return _fill(file, embed(self._texts(), on_batch), count)

    def _texts(self):
        return (text for _, text in self)

    def _write(self, path, vectors, count, model):
        with atomic_write(path, 'w+b') as file:
            _fill(file, vectors, count)
        for other in glob.glob(f'{glob.escape(self.path)}.{model}-*.npy'):
            if other != path:  # of what the corpus was before
                with contextlib.suppress(OSError):
                    os.remove(other)
        return np.load(path, mmap_mode='r')

    def _digest(self):
        """A checksum of the texts, and their number."""
        digest, count = hashlib.blake2b(digest_size=12), 0
        for _, text in self:
            digest.update(text.encode('utf-8', 'surrogatepass') + b'\n')
            count += 1
        return digest.hexdigest(), count


def _fill(file, vectors, count):
    """Write vectors as an array of a .npy file, and map it."""
    mapped = None
    for number, vector in enumerate(vectors):
        if mapped is None:
            shape = (count, len(vector))
            header = {'descr': '<f4', 'fortran_order': False, 'shape': shape}
            np.lib.format.write_array_header_1_0(file, header)
            start = file.tell()
            file.truncate(start + 4 * count * len(vector))
            mapped = np.memmap(file, np.float32, 'r+', start, shape)
        mapped[number] = vector
    mapped.flush()
    return mapped
