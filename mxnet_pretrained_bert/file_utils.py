"""Names of files, and the place of the cache."""

import pathlib

from model_zoo.pretrained.sources import default_root

__all__ = ['CONFIG_NAME', 'PYTORCH_PRETRAINED_BERT_CACHE', 'WEIGHTS_NAME']

#: name of a model's configuration
CONFIG_NAME = 'config.json'
#: name of a model's weights: those of ``mx.nd.save(path, model.state_dict())``
WEIGHTS_NAME = 'model.params'
#: folder of the cache
PYTORCH_PRETRAINED_BERT_CACHE = pathlib.Path(default_root())
