"""Trained models as folders."""

import logging
import os

from ..checkpoint.readers import kept_sums
from ..errors import ZooError

logger = logging.getLogger(__name__)


def save_trained(folder, model, tokenizer, format=None):
    """Write a trained model to a folder, in a format of ``save_pretrained``.

    By default transformers opens it, if the model is one of its kinds; otherwise the format is this
    project's.
    """
    try:
        model.save_pretrained(folder, tokenizer, format=format or 'huggingface')
    except ZooError as error:
        if format is not None or isinstance(error.__cause__, OSError):  # nothing can be written
            raise
        logger.warning('%s: only this project opens %s', error, folder)
        model.save_pretrained(folder, tokenizer)
        return
    older = os.path.join(folder, 'model.params')
    if format is None and os.path.isfile(older):  # which version 0.3 wrote, and is read first
        with kept_sums(folder):
            os.remove(older)
