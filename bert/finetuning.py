"""What the scripts that fine-tune BERT share: the task's model and its tokenizer."""

import logging

from model_zoo.app import check_length

from .tokenizer import open_tokenizer

__all__ = ['make_task_model', 'tokenizer_opener']

logger = logging.getLogger(__name__)


def make_task_model(
    args, choice, task_block, ctx, trains, length_flag='max_seq_length', **task_options
):
    """A task's model with its parameters, and its tokenizer.

    Parameters
    ----------
    args : argparse.Namespace
    choice : model_zoo.app.ModelChoice
    task_block : type
        Subclass of `BertTask`.
    ctx : mxnet.Context
    trains : bool
        Whether the run trains the model: else a head that begins at random is worth a warning.
    length_flag : str
        Name, without dashes, of the flag for the most tokens of a text.
    **task_options
        Such as ``num_labels=2``.

    Returns
    -------
    (BertTask, tokenizer)
        Hybridized.

    Raises
    ------
    ZooError
        If there is no such model, its files can't be found or don't fit, or it doesn't take texts
        of that length.
    """
    if not trains and not choice.has_task:
        logger.warning(
            'neither a folder of a trained model nor --model_parameters is given: the predictions '
            'are those of a random head'
        )
    model, tokenizer = choice.build(
        task_block,
        open_tokenizer,
        ctx,
        {'use_pooler': False, 'use_decoder': False, 'use_classifier': False, **task_block.parts},
        **task_options,
    )
    check_length(args, length_flag, model)
    return model, tokenizer


def tokenizer_opener(do_lower_case=None):
    """`bert.tokenizer.open_tokenizer` with a ``--do_lower_case`` of a user's own.

    Parameters
    ----------
    do_lower_case : bool, optional
        Whether texts are lower-cased; by default what the vocabulary is for.

    Returns
    -------
    callable
        ``open(file, vocab)``, for `ModelChoice.build`.
    """

    def open_as_asked(file, vocab=None):
        if do_lower_case is not None:
            file = file._replace(do_lower_case=do_lower_case)
        return open_tokenizer(file, vocab)

    return open_as_asked
