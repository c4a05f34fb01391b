"""The texts that ``zoo search`` searches, and their vectors in a file beside them."""

import contextlib
import glob
import hashlib
import logging
import os

import numpy as np

from ..errors import InputError
from ..records import has_json, is_table_file
from ..util.display import progress
from ..util.files import atomic_write
from .texts import read_file

logger = logging.getLogger(__name__)


class Corpus:
    """Texts of a file, and their vectors in a file beside it.

    Attributes
    ----------
    rows : list of (int, str)
        The number of its line, and each text that isn't blank.
    """

    def __init__(self, path, column=None, encoding=None):
        is_json = not is_table_file(path) and has_json(path, encoding)
        column = column if is_json or is_table_file(path) else None
        rows = read_file(path, column, encoding=encoding, format='json' if is_json else None)
        self.path, self.rows = path, [(row.number, row.text) for row in rows if not row.is_blank]
        if not self.rows:
            raise InputError(f'{path!r} is empty: give a file with one text per line')

    def vectors(self, embed, model, keeps=True):
        """Return the texts' vectors, from the file beside the corpus if that has a `model`'s."""
        texts, model = [text for _, text in self.rows], model[:12]
        content = '\n'.join(texts).encode('utf-8', 'surrogatepass')
        digest = hashlib.blake2b(content, digest_size=12).hexdigest()
        path = f'{self.path}.{model}-{digest}.npy'
        if keeps and os.path.exists(path):
            with contextlib.suppress(Exception):  # Python's parser reads a damaged header
                kept = np.load(path, mmap_mode='r')
                if kept.ndim == 2 and len(kept) == len(texts) and kept.dtype == np.float32:
                    logger.info('using the vectors in %s', path)
                    return kept
        vectors = np.stack(list(progress(embed(texts), 'texts', total=len(texts))))
        if keeps:
            try:
                with atomic_write(path, 'wb') as file:
                    np.save(file, vectors)
            except InputError as error:
                logger.warning('the vectors are not kept: %s', error)
                return vectors
            for other in glob.glob(f'{glob.escape(self.path)}.{model}-*.npy'):
                if other != path:  # of the texts of an earlier version
                    with contextlib.suppress(OSError):
                        os.remove(other)
        return vectors
