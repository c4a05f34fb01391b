"""`TextClassifier` in scikit-learn's own tools."""

import pickle

import numpy as np
import pytest
import tiny
from json_files import cases
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from model_zoo import TextClassifier
from model_zoo.errors import UnknownNameError

TEXTS = ['a b', 'c d', 'a a b', 'd c c'] * 6
LABELS = np.array([3, 1, 3, 1] * 6)


def lower(texts):
    return [text.lower() for text in texts]


@pytest.fixture(scope='module')
def new(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tiny') / 'model'
    tiny.save_bert(folder, list('abcd'))
    options = {'epochs': 3, 'batch_size': 4, 'lr': 3e-3, 'warmup_ratio': 0.2}
    return TextClassifier(str(folder), **options)


@pytest.fixture(scope='module')
def fitted(new):
    return clone(new).fit(TEXTS, LABELS)


def test_labels_keep_their_type(fitted):
    assert fitted.classes_.tolist() == [1, 3]
    assert fitted.predict(TEXTS[:2]).tolist() == [3, 1]
    assert fitted.score(TEXTS, LABELS) == 1
    np.testing.assert_allclose(fitted.predict_proba(TEXTS).sum(axis=1), 1, atol=1e-6)


def test_a_pickle_predicts_the_same(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.get_params() == fitted.get_params()
    np.testing.assert_array_equal(copy.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    again = pickle.loads(pickle.dumps(copy))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_pairs_of_texts(new):
    pairs = [(text, 'b') for text in TEXTS]
    labels = ['yes', 'no'] * 12
    fitted = clone(new).set_params(epochs=10).fit(pairs, labels)
    assert fitted.predict(pairs[:2]).tolist() == ['yes', 'no']


def test_scikit_learns_tools(new):
    steps = make_pipeline(FunctionTransformer(lower), clone(new))
    grid = {'textclassifier__method': ['full', 'linear']}
    search = GridSearchCV(steps, grid, cv=2).fit(np.array(TEXTS), LABELS)
    assert search.best_params_['textclassifier__method'] in ('full', 'linear')
    assert search.predict(['a b']).shape == (1,)


def test_each_setting_is_a_parameter(new):
    given = {'method': 'linear', 'class_weights': {1: 2.0, 3: 1.0}, 'settings': {'seed': 3}}
    linear = clone(TextClassifier(new.model, **given))
    assert linear.get_params() == {**TextClassifier(new.model).get_params(), **given}
    assert repr(TextClassifier('m', epochs=2)) == "TextClassifier(epochs=2, model='m')"
    assert linear.fit(TEXTS, LABELS).score(TEXTS, LABELS) == 1
    with pytest.raises(UnknownNameError):
        TextClassifier(new.model, epoch=3)


def test_it_must_be_fitted_first(new):
    with pytest.raises(NotFittedError):
        clone(new).predict(TEXTS)


BAD = cases('app')['BAD_ROWS_OF_ESTIMATORS']


@pytest.mark.parametrize('texts, labels', BAD)
def test_bad_input(new, texts, labels):
    with pytest.raises(ValueError):  # InputError is one
        clone(new).fit(texts, labels)
