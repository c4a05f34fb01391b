"""Tiny models that the tests of pipelines and of the server share."""

import math

import pytest
from tiny_models import save_bert, save_gpt2

import bert
import model_zoo
from model_zoo.inference.pipeline_base import Meter


@pytest.fixture(scope='session')
def saved(tmp_path_factory):
    """A function that saves a tiny BERT and returns its folder."""
    root, folders = tmp_path_factory.mktemp('models'), {}

    def save(block_class, labels=None):
        key = block_class.__name__, str(labels)
        if key not in folders:
            folders[key] = save_bert(root / f'model{len(folders)}', block_class, labels)
        return folders[key]

    return save


@pytest.fixture(scope='session')
def writer_folder(tmp_path_factory):
    """The folder of a tiny GPT-2."""
    return save_gpt2(tmp_path_factory.mktemp('models') / 'gpt2')


@pytest.fixture(scope='module')
def pipelines(saved, writer_folder):
    """Name of a model -> its pipeline; of all tasks."""
    nli = ['contradiction', 'neutral', 'entailment']
    folders = {
        'sentiment': saved(bert.BertForSequenceClassification, ['bad', 'good']),
        'nli': saved(bert.BertForSequenceClassification, nli),
        'tagger': saved(bert.BertForTokenClassification, ['O', 'B-X', 'I-X']),
        'squad': saved(bert.BertForQuestionAnswering),
        'masks': saved(bert.BertForMaskedLM),
        'owner/vectors': saved(bert.BertModel),
        'choice': saved(bert.BertForMultipleChoice),
        'next': saved(bert.BertForNextSentencePrediction),
        'writer': writer_folder,
    }
    return {name: model_zoo.pipeline(folder) for name, folder in folders.items()}


@pytest.fixture(scope='session')
def rows_of():
    """A function of a pipeline, an item and options: the rows that the model is given."""
    limits = dict.fromkeys(('max_rows', 'max_tokens', 'max_body', 'max_answer'), 10**9)
    return lambda pipe, item, options: (
        pipe.prepare([item], options, Meter(math.inf, **limits)).all_rows
    )


@pytest.fixture(scope='module')
def served_at(app):
    """HOST:PORT of a server that runs the module's `app`."""
    pytest.importorskip('uvicorn')
    from serving import serving

    with serving(app) as (host, port):
        yield f'{host}:{port}'
