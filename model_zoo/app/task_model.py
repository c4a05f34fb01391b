"""BERT for a task, for the scripts that fine-tune it."""

import logging

from .arguments import check_length

__all__ = ['make_task_model']

logger = logging.getLogger(__name__)


def make_task_model(
    args, choice, task, ctx, trains, length_flag='max_seq_length', do_lower_case=None,
    **task_options,
):  # fmt: skip
    """A task's model with its parameters, and its tokenizer.

    Parameters
    ----------
    args : argparse.Namespace
    choice : ModelChoice
    task : str or type
        Such as 'classification', or a subclass of `bert.BertTask`.
    ctx : mxnet.Context
    trains : bool
        Whether the run trains the model; if not, a random head gets a warning, and a model of
        another task is refused.
    length_flag : str
        Name, without dashes, of the flag for the most tokens of a text.
    do_lower_case : bool, optional
        Whether texts are lowered; by default what the vocabulary is for. A vocabulary that was
        published with its model is lowered as that was, as in pytorch-pretrained-bert.
    **task_options
        Such as ``num_labels=2``.

    Returns
    -------
    (BertTask, tokenizer)
        Hybridized.
    """
    if not trains and not choice.has_task:
        logger.warning(
            'neither a folder of a trained model nor --model_parameters is given: the predictions '
            'come from a random head'
        )
    if not trains:
        choice.check_trained_for(task)
    lowers = None if choice.has_released_vocab else do_lower_case
    model, tokenizer = choice.build(task, ctx, do_lower_case=lowers, **task_options)
    if do_lower_case not in (None, tokenizer.do_lower_case):
        logger.warning(
            'the vocabulary of %s decides: texts are %s',
            choice.model,
            'lower-cased' if tokenizer.do_lower_case else 'not lower-cased',
        )
    check_length(args, length_flag, model)
    return model, tokenizer
