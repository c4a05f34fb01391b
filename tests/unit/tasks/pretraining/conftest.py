"""What the tests of pre-training's data begin with."""

import pytest

from bert.tokenizer import BertTokenizer
from model_zoo.tasks.pretraining.create import create_shards
from model_zoo.tasks.pretraining.text import Corpus, SampleMaker


@pytest.fixture(scope='module')
def tokenizer(fixtures):
    return BertTokenizer(fixtures / 'pretraining' / 'vocab.txt')


@pytest.fixture(scope='module')
def text(fixtures):
    """The paths of a text, which is read six times."""
    return [str(fixtures / 'pretraining' / 'sample_text.txt')] * 6


@pytest.fixture(scope='module')
def shards(request, text, tokenizer, tmp_path_factory):
    """A folder of the text's samples, as the module's OPTIONS and FILES say."""
    folder, module = tmp_path_factory.mktemp('shards'), request.module
    maker = SampleMaker(Corpus(text), tokenizer, module.OPTIONS)
    create_shards(maker, folder, num_outputs=module.FILES)
    return folder
