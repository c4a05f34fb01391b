"""ONNX Runtime as an engine: a block's graph, exported once and kept in the cache."""

import hashlib
import json
import logging
import os

import filelock
import numpy as np

from ..checkpoint.graph_file import sums_path
from ..checkpoint.sums import check_sums
from ..errors import CheckpointError
from ..families import load_exporter
from ..pretrained import default_root
from ..util.files import make_writable_dir
from ..util.threads import available_processors
from .engine import Engine

__all__ = ['OnnxRuntimeEngine']

logger = logging.getLogger(__name__)

_LIBRARIES = ('onnx', 'onnxruntime')
_FORMAT = 1  # raised when the exporter writes other graphs


class OnnxRuntimeEngine(Engine):
    """Runs an ONNX file with the inputs that `export.export_onnx` gives it.

    Parameters
    ----------
    path : str
        Compared with its checksums where they are beside it.
    """

    name = 'onnxruntime'

    def __init__(self, path):
        import onnxruntime

        super().__init__()
        check_sums(sums_path(path))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(
            os.environ.get('OMP_NUM_THREADS') or available_processors()
        )
        options.log_severity_level = 3
        self.path = path
        try:
            self._session = onnxruntime.InferenceSession(
                path, options, providers=['CPUExecutionProvider']
            )
        except Exception as error:  # its own classes have no common base
            raise CheckpointError(f'ONNX Runtime cannot load {path!r}: {error}') from error
        self._inputs = {each.name: len(each.shape) for each in self._session.get_inputs()}

    @classmethod
    def of(cls, block, precision='float32'):
        """The engine of a block, whose ONNX file is made if the cache lacks it.

        Parameters
        ----------
        block : ZooBlock
        precision : {'float32', 'int8'}
        """
        return cls(cls.file_of(block, precision))

    @staticmethod
    def file_of(block, precision):
        """Path of a block's ONNX file in the cache, made if it isn't there."""
        folder = make_writable_dir(os.path.join(default_root(), 'engines'))
        name = _key(block, precision)
        path = os.path.join(folder, f'{name}.onnx')
        with filelock.FileLock(os.path.join(folder, f'.{name}.lock')):
            if not os.path.exists(path):
                logger.info('making the ONNX file of this model, once')
                load_exporter()(block, folder, name, block.fuses_in_onnx, precision)
        return path

    def feed(self, words, token_types, valid_length):
        """The file's inputs by their names; see `run`.

        Returns
        -------
        dict of str to numpy.ndarray, int64
        """
        mask = np.arange(words.shape[1]) < valid_length[:, None]
        given = {'input_ids': words, 'token_type_ids': token_types, 'attention_mask': mask}
        feed = {}
        for name, axes in self._inputs.items():
            array = given[name].astype(np.int64)
            feed[name] = array if axes == 2 else array[:, None]  # a choice is a text of its own
        return feed

    def run(self, words, token_types, valid_length):
        feed = self.feed(words, token_types, valid_length)
        # several threads may run a session, but each run takes all processors
        with self.lock:
            return self._session.run(None, feed)


def _key(block, precision):
    """A name for the file: of the weights, the configuration, and the versions."""
    import importlib.metadata  # slow to import

    digest = hashlib.blake2b(digest_size=16)
    versions = [importlib.metadata.version(each) for each in _LIBRARIES]
    about = [_FORMAT, type(block).__name__, block.config.to_dict(), precision, versions]
    digest.update(json.dumps(about, sort_keys=True, default=str).encode())
    names = block._collect_params_with_prefix()  # these don't depend on what was made before
    for name in sorted(names):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(names[name].data().asnumpy()))
    return digest.hexdigest()
