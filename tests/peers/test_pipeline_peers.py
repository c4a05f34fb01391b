"""Pipelines beside those of transformers, on folders of a small BERT that knows MiniLM's words."""

import functools
import itertools
import re

import mxnet as mx
import pytest
import tiny
from arrays import assert_close
from variant_models import MAKERS

import model_zoo
from bert import BertForMaskedLM, BertTokenizer, RobertaForTokenClassification
from model_zoo.opening import open_model

transformers = pytest.importorskip('transformers')
torch = pytest.importorskip('torch')
pytestmark = pytest.mark.peers

TEXTS = [
    'We introduce a new language representation model.',
    'A cat sleeps on the warm windowsill, dreaming of unbelievable adventures.',
    'no',
    'Herr Müller lives in Zürich (Switzerland), and he likes it — très bien! 你好.',
]
LONG = ' '.join(f'{text} This is sentence {number}.' for number, text in enumerate(TEXTS * 10))
BIO = ['O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC']


@pytest.fixture(scope='module')
def masked(tmp_path_factory, minilm_dir):
    """A folder of masked words' model, in both's format."""
    tokenizer = BertTokenizer.from_pretrained(str(minilm_dir))
    config = tiny.bert_config(len(tokenizer.vocab), max_position_embeddings=512)
    folder = str(tmp_path_factory.mktemp('masked'))
    block = tiny.initialized(BertForMaskedLM(config), 0.3)
    block.save_pretrained(folder, tokenizer, format='huggingface')
    return folder


@pytest.fixture(scope='module')
def folder_of(masked, tmp_path_factory):
    """A function that makes a folder of the same with a random head of a task."""
    folders = {}

    def make(task, scale=0.3, **fields):
        key = task, *sorted((name, str(value)) for name, value in fields.items())
        if key not in folders:
            labels = fields.pop('labels', None)
            options = {} if labels is None else {'num_labels': len(labels)}
            block, tokenizer, _ = open_model(masked, task, **options)
            mx.random.seed(3)
            for name, parameter in block.collect_params().items():
                if re.search('pooler|classifier|span', name):
                    parameter.set_data(mx.nd.random.normal(0, scale, parameter.shape))
            if labels is not None:
                block.config.extras['id2label'] = {str(n): name for n, name in enumerate(labels)}
                block.config.extras['label2id'] = {name: n for n, name in enumerate(labels)}
            block.config.extras.update(fields)
            folder = str(tmp_path_factory.mktemp(task))
            block.save_pretrained(folder, tokenizer, format='huggingface')
            folders[key] = folder
        return folders[key]

    return make


assert_alike = functools.partial(assert_close, tolerance=1e-4)


def their_pipeline(task, folder, **options):
    return transformers.pipeline(task, folder, device='cpu', **options)


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'top_k': None},
        {'top_k': 2},
        {'function_to_apply': 'sigmoid'},
        {'function_to_apply': 'none', 'top_k': 1},
    ],
)
def test_classification(folder_of, options):
    folder = folder_of('classification', labels=['bad', 'fair', 'good'])
    ours, theirs = model_zoo.pipeline(folder), their_pipeline('text-classification', folder)
    assert ours.task == 'text-classification'
    assert_alike(ours(TEXTS, **options), theirs(TEXTS, **options))
    assert_alike(ours(TEXTS[0], **options), theirs(TEXTS[0], **options))
    pairs = [{'text': one, 'text_pair': other} for one, other in itertools.pairwise(TEXTS)]
    assert_alike(ours(pairs, **options), theirs(pairs, **options))
    long = theirs([LONG], truncation=True, max_length=512, **options)
    assert_alike(ours([LONG], **options), long)


@pytest.mark.parametrize('problem', [None, 'regression'])
def test_one_number(folder_of, problem):
    fields = {} if problem is None else {'problem_type': problem}
    folder = folder_of('classification', labels=['number'], **fields)
    ours, theirs = model_zoo.pipeline(folder), their_pipeline('text-classification', folder)
    assert_alike(ours(TEXTS), theirs(TEXTS))


@pytest.mark.parametrize(
    'options', [{}, {'multi_label': True}, {'hypothesis_template': 'It is about {}, I say.'}]
)
def test_zero_shot(folder_of, options):
    folder = folder_of('classification', labels=['entailment', 'neutral', 'contradiction'])
    ours = model_zoo.pipeline('zero-shot-classification', folder)
    theirs = their_pipeline('zero-shot-classification', folder)
    for texts, labels in (
        (TEXTS, ['travel', 'language models', 'pets']),
        (TEXTS[0], 'travel, pets'),
    ):
        given = {'candidate_labels': labels, **options}
        assert_alike(ours(texts, **given), theirs(texts, **given))


@pytest.mark.parametrize('strategy', ['none', 'simple', 'first', 'average', 'max'])
def test_token_classification(folder_of, strategy):
    folder = folder_of('tagging', labels=BIO)
    ours, theirs = model_zoo.pipeline('ner', folder), their_pipeline('ner', folder)
    texts = [*TEXTS[:3], 'Herr Müller lives in Zürich (Switzerland), and he likes it!']
    options = {'aggregation_strategy': strategy}
    assert_alike(ours(texts, **options), theirs(texts, **options))
    everything = {**options, 'ignore_labels': []}
    assert_alike(ours(texts[1], **everything), theirs(texts[1], **everything))
    if strategy != 'none':
        whole = their_pipeline('ner', folder, stride=100, **options)
        whole.tokenizer.model_max_length = 512
        assert_alike(ours(LONG, stride=100, **options), whole(LONG))


@pytest.mark.parametrize('strategy', ['none', 'simple', 'first', 'average', 'max'])
def test_words_of_byte_pairs(tmp_path, strategy):
    model, tokenizer = MAKERS['roberta'](tmp_path)
    block = tiny.initialized(RobertaForTokenClassification(model.config, num_labels=5))
    block.save_pretrained(str(tmp_path), tokenizer, format='huggingface')
    options = {'aggregation_strategy': strategy, 'ignore_labels': []}
    ours, theirs = model_zoo.pipeline(str(tmp_path)), their_pipeline('ner', str(tmp_path))
    texts = ["don't stop", 'the U.N. and AT&T', 'a  b, c; d', ' lead', "O'Neil (in Paris)."]
    assert_alike(ours(texts, **options), theirs(texts, **options))


@pytest.mark.parametrize('options', [{}, {'top_k': 2}, {'targets': ['cat', 'dog', 'house']}])
def test_fill_mask(masked, options):
    ours, theirs = model_zoo.pipeline(masked), their_pipeline('fill-mask', masked)
    texts = ['The [MASK] sleeps.', 'Paris is the capital of [MASK], I think.']
    assert_alike(ours(texts, **options), theirs(texts, **options))
    assert_alike(ours(texts[0], **options), theirs(texts[0], **options))
    if 'targets' not in options:  # where transformers has an error
        two = 'The [MASK] eats the [MASK].'
        assert_alike(ours(two, **options), theirs(two, **options))


def test_feature_extraction(minilm_dir):
    ours = model_zoo.pipeline(str(minilm_dir))
    theirs = their_pipeline('feature-extraction', str(minilm_dir))
    assert_close(ours(TEXTS), theirs(TEXTS))
    assert_close(ours(TEXTS[0]), theirs(TEXTS[0]))
