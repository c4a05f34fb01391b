"""Names of files, and the folder of the cache."""

import os
import pathlib

from model_zoo.pretrained import default_root, list_pretrained, local_path

__all__ = ['CONFIG_NAME', 'PYTORCH_PRETRAINED_BERT_CACHE', 'WEIGHTS_NAME', 'cached_path']

#: name of a model's configuration
CONFIG_NAME = 'config.json'
#: name of a model's weights, as ``mx.nd.save(path, model.state_dict())`` writes them
WEIGHTS_NAME = 'pytorch_model.bin'
#: folder of the cache: the environment variable of this name, or ``$MXNET_HOME/models``
PYTORCH_PRETRAINED_BERT_CACHE = pathlib.Path(
    os.environ.get('PYTORCH_PRETRAINED_BERT_CACHE') or default_root()
)


def cache_root(cache_dir=None):
    """Return the folder for downloads: `cache_dir`, or the environment variable's, or None."""
    return cache_dir or os.environ.get('PYTORCH_PRETRAINED_BERT_CACHE')


class CachedTokenizer:
    """A tokenizer's ``from_pretrained`` with the original's second argument, and its cache."""

    @classmethod
    def from_pretrained(cls, name_or_dir, cache_dir=None, **kwargs):
        """The same as the base class's, with its downloads in the folder of `cache_root`."""
        root = kwargs.pop('root', None) or cache_root(cache_dir)
        return super().from_pretrained(name_or_dir, root=root, **kwargs)


def archive_map(family):
    """Return a dict of the names of a family's pretrained weights and their names here."""
    entries = [entry for entry in list_pretrained() if entry.family == family]
    return {name: entry.full_name for entry in entries for name in entry.names}


def cached_path(url_or_filename, cache_dir=None):
    """Return the local path of a file or an address; an archive is unpacked."""
    return local_path(url_or_filename, root=cache_root(cache_dir))[0]
