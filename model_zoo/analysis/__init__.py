"""Analysis of attention heads, and pruning.

``measure_heads`` -> ``normalize_importance`` -> ``mask_heads`` -> ``heads_to_prune`` -> the block's
``prune_heads``. They work with every :class:`model_zoo.blocks.attention_block.AttentionBlock`.
"""

from .heads import (
    HeadMeasures,
    MaskingStep,
    attention_of,
    heads_left,
    heads_to_prune,
    mask_heads,
    measure_heads,
    normalize_importance,
)

__all__ = [
    'HeadMeasures',
    'MaskingStep',
    'attention_of',
    'heads_left',
    'heads_to_prune',
    'mask_heads',
    'measure_heads',
    'normalize_importance',
]
