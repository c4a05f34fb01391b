"""`TextClassifier`: fine-tuning as an estimator of scikit-learn."""

from __future__ import annotations

import pathlib
import tempfile
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..errors import InputError, UnknownNameError
from ..tasks.settings import ClassificationSettings

#: what the estimator's arguments say
_KNOWN = {'model', 'labels', 'data_dir', 'train_file', 'dev_file', 'test_file'}
#: the parameters that are settings; none is given
_SETTINGS = dict.fromkeys(name for name in ClassificationSettings.defaults() if name not in _KNOWN)


class TextClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts, or pairs of texts, with a fine-tuned transformer.

    It works where scikit-learn's estimators do: ``Pipeline``, ``cross_val_score``,
    ``GridSearchCV``, ``joblib``. ``Pipeline`` and searches name its settings, such as
    ``textclassifier__epochs``.

    Parameters
    ----------
    model : str
        A name, a folder or an id on the hub: see `model_zoo.finetune`.
    settings : dict, optional
        Settings of text classification in one parameter, such as ``{'warmup_ratio': 0.2}``.
    **more
        Each setting of `model_zoo.finetune` for text classification, such as ``epochs``, ``seed``
        or ``method='linear'``; None is not given. ``class_weights`` may be a dict of labels.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels, sorted.
    model_ : Pipeline
        The trained model, as a pipeline for text classification.
    history_ : list of dict
        See `Trained`.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> cross_val_score(TextClassifier('all-MiniLM-L6-v2'), texts, labels)  # doctest: +SKIP
    """

    def __init__(self, model='all-MiniLM-L6-v2', *, settings=None, **more):
        for name in more:
            UnknownNameError.check('setting', name, _SETTINGS)
        vars(self).update({'model': model, 'settings': settings, **_SETTINGS, **more})

    @classmethod
    def _get_param_names(cls):  # scikit-learn's own reads the arguments, without `more`
        return sorted(['model', 'settings', *_SETTINGS])

    def __repr__(self, N_CHAR_MAX=700):
        given = [f'{n}={value!r}' for n, value in self.get_params().items() if value is not None]
        return f'TextClassifier({", ".join(given)})'

    def fit(self, X, y):
        """Train the model.

        Parameters
        ----------
        X : array-like of str, (n,), or of pairs of str, (n, 2)
        y : array-like, (n,)
            Labels of any type that can be sorted.

        Returns
        -------
        TextClassifier
        """
        from .finetune import finetune

        texts = _texts(X)
        missing = [number for number, label in enumerate(y) if label is None or label != label]
        if missing:
            raise InputError(f'has no label in row {missing[0]}', field='y')
        y = np.asarray(y)
        check_classification_targets(y)
        check_consistent_length(texts, y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        numbers = {label: str(number) for number, label in enumerate(self.classes_.tolist())}
        given = {name: vars(self)[name] for name in _SETTINGS if vars(self)[name] is not None}
        given.update(self.settings or {})
        if isinstance(given.get('class_weights'), dict):
            weights = given['class_weights'].items()
            given['class_weights'] = {numbers.get(name, name): weight for name, weight in weights}
        rows = [(*row, str(label)) for row, label in zip(texts, labels)]
        names = list(numbers.values())
        trained = finetune(self.model, 'text-classification', rows, labels=names, **given)
        self.history_ = trained.history
        self._folder = tempfile.TemporaryDirectory(prefix='zoo-')
        trained.save(self._folder.name)
        self._open()
        return self

    def _open(self):
        from ..inference import pipeline

        self.model_ = pipeline('text-classification', self._folder.name)

    def predict_proba(self, X):
        """Return the probabilities of the `classes_`, an array of (n, classes)."""
        check_is_fitted(self)
        texts = _texts(X)
        result = np.zeros((len(texts), len(self.classes_)))
        inputs = [row if len(row) == 2 else row[0] for row in texts]
        for row, scores in zip(result, self.model_(inputs, top_k=None)):
            for score in scores:
                row[int(score['label'])] = score['score']
        return result

    def predict(self, X):
        """Return the most probable label of each text, an array of (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __getstate__(self):
        """Return the settings and the trained model's files, which `pickle` and joblib store."""
        state = {**super().__getstate__()}
        if state.pop('model_', None) is not None:
            folder = pathlib.Path(state.pop('_folder').name)
            paths = sorted(path for path in folder.rglob('*') if path.is_file())
            state['_files'] = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        return state

    def __setstate__(self, state):
        files = state.pop('_files', None)
        super().__setstate__({**_SETTINGS, **state})
        if files is not None:
            self._folder = tempfile.TemporaryDirectory(prefix='zoo-')
            for name, content in files.items():
                path = pathlib.Path(self._folder.name, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self._open()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = replace(tags.input_tags, two_d_array=False, one_d_array=True, string=True)
        return tags


def _texts(X):
    """Return the rows of X as tuples of one or two texts."""
    rows, pairs = np.asarray(X, dtype=object), (np.ndarray, list, tuple)
    if not rows.ndim:
        raise InputError(f'X must be a list of texts, not {X!r:.80}')
    rows = [tuple(row) if isinstance(row, pairs) else (row,) for row in rows]
    for number, row in enumerate(rows):
        if len(row) not in (1, 2) or not all(isinstance(text, str) for text in row):
            raise InputError(f'row {number} of X is no text or pair of texts: {row!r:.80}')
    return rows
