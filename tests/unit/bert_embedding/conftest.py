"""A small BERT with random weights, saved as a directory."""

import string

import pytest
import tiny

# As BERT's own vocabulary cuts the originals' example: "encoder" and "bidirectional" have pieces.
README_PIECES = (
    'we introduce new language representation model called bert which stands for '
    'bid ##ire ##ction ##al en ##code representations from transformers'
)


@pytest.fixture(scope='session')
def tiny_dir(tmp_path_factory):
    """Directory of a model with 2 layers, 16 units and 32 positions, and its vocabulary."""
    words = README_PIECES.split()
    words += [*string.ascii_lowercase, *(f'##{char}' for char in string.ascii_lowercase)]
    words += [*string.digits, *string.punctuation, '你', '好']
    directory = tmp_path_factory.mktemp('tiny_bert')
    tiny.save_bert(directory, dict.fromkeys(words), max_position_embeddings=32)
    return directory
