"""Names of files, and the place of the cache."""

import pathlib

from model_zoo.pretrained import default_root, local_path

__all__ = ['CONFIG_NAME', 'PYTORCH_PRETRAINED_BERT_CACHE', 'WEIGHTS_NAME', 'cached_path']

#: name of a model's configuration
CONFIG_NAME = 'config.json'
#: name of a model's weights: those of ``mx.nd.save(path, model.state_dict())``
WEIGHTS_NAME = 'model.params'
#: folder of the cache
PYTORCH_PRETRAINED_BERT_CACHE = pathlib.Path(default_root())


def cached_path(url_or_filename, cache_dir=None):
    """The path on this machine of a file that is here or at an address.

    Parameters
    ----------
    url_or_filename : str or os.PathLike
        An archive is unpacked.
    cache_dir : str, optional
        Where what is downloaded is kept; by default `PYTORCH_PRETRAINED_BERT_CACHE`.

    Returns
    -------
    str
    """
    return local_path(url_or_filename, root=cache_dir)[0]
