"""What the scripts of the pre-training of BERT and of the models like it share."""

import dataclasses

from ..errors import InputError
from ..opening import config_of_folder, find_block_class
from ..pretrained import get_entry, is_model_folder, resolve
from ..registry import family_of_class
from ..tasks.pretraining import SampleOptions
from . import cli
from .arguments import from_flags

__all__ = ['add_objective_argument', 'pretraining_class', 'sample_options']

DISCRIMINATOR = 'ElectraForPreTraining'


def add_objective_argument(parser):
    """Add ``--masked_lm_only``."""
    parser.add_argument(
        '--masked_lm_only', action='store_true', default=None,
        help='masked words alone, without next sentences, in samples of full sentences; the '
        'default for RoBERTa, XLM-R, DistilBERT and ELECTRA',
    )  # fmt: skip
    parser.rank_last('masked_lm_only')  # an abbreviation is --masked_lm_prob's


def pretraining_class(args, model, dataset=None):
    """The class of the block to pre-train.

    Parameters
    ----------
    args : argparse.Namespace
        With ``--masked_lm_only`` and ``--from_scratch``.
    model : str
        Name, folder or checkpoint.
    dataset : str, optional
        Of a name.

    Returns
    -------
    type
        That of 'pretraining', or of 'masked_lm' if that is asked for, or the model has no next
        sentences. The `pretraining_terms` tell.

    Raises
    ------
    InputError
        If the weights are ELECTRA's discriminator.
    """
    family = family_of_class(find_block_class('bert', None, model, dataset))
    if 'replaced_words' in family.tasks and not args.from_scratch:
        _check_generator(model, dataset)
    both = 'pretraining' in family.tasks and not args.masked_lm_only
    return family.block_class('pretraining' if both else 'masked_lm')


def _check_generator(model, dataset):
    if is_model_folder(model):
        refused = DISCRIMINATOR in (config_of_folder(model).get('architectures') or ())
    else:
        refused = 'decoder' in get_entry(*resolve(model, dataset)).lacks
    if refused:
        raise InputError(
            f'{model!r} is a discriminator, which finds words that a generator has replaced: this '
            'needs both at a time, and is not built here. Its generator can be trained on masked '
            'words: name that, such as google/electra-small-generator'
        )


def sample_options(args, next_sentence):
    """How samples are made from a text; masks that get lost are warned of.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags that have the names of its fields.
    next_sentence : bool
        Whether the model predicts next sentences.

    Returns
    -------
    SampleOptions
    """
    if not next_sentence and cli.is_given(args, 'short_seq_prob'):
        raise InputError(
            '--short_seq_prob is of pairs with next sentences: samples of masked words alone are '
            'packed with as many sentences as fit'
        )
    options = dataclasses.replace(from_flags(SampleOptions, args), next_sentence=next_sentence)
    options.warn_of_lost_masks()
    return options
