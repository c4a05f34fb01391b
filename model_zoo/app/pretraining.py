"""What the scripts of the pre-training of BERT and of the models like it share."""

from ..tasks.masked_lm import make_sample_options, pretraining_class
from . import cli

__all__ = ['add_objective_argument', 'pretraining_class', 'sample_options']


def add_objective_argument(parser):
    """Add ``--masked_lm_only``."""
    parser.add_argument(
        '--masked_lm_only', action='store_true', default=None,
        help='masked words alone, without next sentences, in samples of full sentences; the '
        'default for RoBERTa, XLM-R, DistilBERT and ELECTRA',
    )  # fmt: skip
    parser.rank_last('masked_lm_only')  # an abbreviation is --masked_lm_prob's


def sample_options(args, next_sentence):
    """`make_sample_options` of the flags."""
    return make_sample_options(args, next_sentence, cli.is_given(args, 'short_seq_prob'))
