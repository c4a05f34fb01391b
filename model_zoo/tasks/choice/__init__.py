"""Multiple choice: SWAG and the Story Cloze Test."""

from .story_cloze import (
    Story,
    StoryClozeFeatures,
    hold_out,
    read_story_cloze,
    write_story_cloze_predictions,
)
from .swag import (
    ChoiceSettings,
    ChoiceTask,
    MultipleChoice,
    SwagExample,
    SwagFeatures,
    read_swag,
    write_swag_predictions,
)

__all__ = [
    'ChoiceSettings',
    'ChoiceTask',
    'MultipleChoice',
    'Story',
    'StoryClozeFeatures',
    'SwagExample',
    'SwagFeatures',
    'hold_out',
    'read_story_cloze',
    'read_swag',
    'write_story_cloze_predictions',
    'write_swag_predictions',
]
