"""What attention heads do, and what a model does without them.

``measure_heads`` -> ``normalize_importance`` -> ``mask_heads`` -> ``heads_to_prune`` -> the block's
``prune_heads``; ``plot_heads`` and ``plot_attention`` draw what they say. They work with every
:class:`model_zoo.blocks.heads.AttentionBlock`.
"""

from .heads import HeadMeasures, attention_of, measure_heads, normalize_importance
from .masking import MaskingStep, heads_left, heads_to_prune, mask_heads
from .pictures import plot_attention, plot_heads
from .study import HeadStudy, rank_heads
from .subjects import ClassifierSubject, LanguageModelSubject, OneSentence, SentencePair

__all__ = [
    'ClassifierSubject',
    'HeadMeasures',
    'HeadStudy',
    'LanguageModelSubject',
    'MaskingStep',
    'OneSentence',
    'SentencePair',
    'attention_of',
    'heads_left',
    'heads_to_prune',
    'mask_heads',
    'measure_heads',
    'normalize_importance',
    'plot_attention',
    'plot_heads',
    'rank_heads',
]
