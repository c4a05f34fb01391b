"""``method='linear'``: a head on the vectors of a frozen encoder, fitted by scikit-learn."""

import contextlib
import warnings

import numpy as np

__all__ = ['fit_head', 'predict_from_words']

#: inverse strengths of the regularization that cross-validation chooses from
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 5


def fit_head(units, vectors, labels, class_weight=None, seed=0):
    """Fit the weights of a classifier's dense layer to vectors and labels.

    Parameters
    ----------
    units : int
        The layer's outputs.
    vectors : numpy.ndarray of float32, (samples, units)
    labels : numpy.ndarray
        Integers, (samples,): classes, by logistic regression. Floats, (samples,): numbers, by ridge
        regression. (samples, labels) of 0 and 1: a logistic regression per label.
    class_weight : dict or 'balanced', optional
        See scikit-learn's ``LogisticRegression``.

    Returns
    -------
    (numpy.ndarray, numpy.ndarray, str)
        Weights (units, size of a vector), biases (units,), and what was fitted, such as 'logistic
        regression, C = 0.03'.
    """
    scale = float(vectors.std()) or 1.0  # one factor for all: the strengths are comparable
    scaled = vectors / scale
    if labels.ndim == 2:
        columns = labels.T.astype(int)
        fits = [_classes(scaled, column, 2, class_weight, seed) for column in columns]
        weight = np.stack([weight[1] - weight[0] for weight, _, _ in fits])
        bias = np.stack([bias[1] - bias[0] for _, bias, _ in fits])
        strengths = [strength for _, _, strength in fits]
    elif labels.dtype.kind == 'f':
        from sklearn.linear_model import RidgeCV

        model = RidgeCV(alphas=[1 / strength for strength in STRENGTHS])
        model.fit(scaled, labels.astype(np.float32))
        weight, bias = model.coef_.reshape(1, -1), np.reshape(model.intercept_, 1)
        strengths = [1 / model.alpha_]
    else:
        weight, bias, *strengths = _classes(scaled, labels, units, class_weight, seed)
    strengths = sorted({*strengths} - {None})
    shown = ' to '.join(f'{each:g}' for each in strengths[:1] + strengths[1:][-1:])
    kind = 'ridge' if labels.dtype.kind == 'f' and labels.ndim == 1 else 'logistic'
    return weight / scale, bias, f'{kind} regression{shown and f", C = {shown}"}'


def predict_from_words(texts, labels, others):
    """Fit scikit-learn's TF-IDF and a linear model to texts; returns its predictions for `others`.

    Parameters
    ----------
    texts, others : list of str
    labels : numpy.ndarray
        As of `fit_head`.

    Returns
    -------
    (str, numpy.ndarray or None)
        The model's name, and predictions like `labels`; None if there is nothing to learn.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline

    model, name = LogisticRegression(class_weight='balanced', max_iter=1000), 'logistic regression'
    if labels.ndim == 2:
        model = OneVsRestClassifier(model)
    elif labels.dtype.kind == 'f':
        model, name = Ridge(), 'ridge regression'
    found = None
    # one class alone, and texts without words, are errors
    with warnings.catch_warnings(), contextlib.suppress(ValueError):
        warnings.simplefilter('ignore')  # of labels that all rows have
        found = make_pipeline(TfidfVectorizer(), model).fit(texts, labels).predict(others)
    return f'TF-IDF and {name}', found


def _classes(vectors, labels, units, class_weight, seed):
    """Fit weights, biases and C; classes without an example are never predicted."""
    weight, bias = np.zeros((units, vectors.shape[1])), np.full(units, -100.0)
    classes = np.unique(labels)
    if len(classes) == 1:
        bias[classes] = 0
        return weight, bias, None
    model = _logistic(vectors, labels, class_weight, seed)
    coefficients, intercepts = model.coef_, model.intercept_
    if len(classes) == 2:  # one function says both: its softmax is the sigmoid
        coefficients = np.concatenate([-coefficients, coefficients]) / 2
        intercepts = np.concatenate([-intercepts, intercepts]) / 2
    weight[classes], bias[classes] = coefficients, intercepts
    return weight, bias, model.C


def _logistic(vectors, labels, class_weight, seed):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    model = LogisticRegression(C=STRENGTHS[3], class_weight=class_weight, max_iter=1000)
    folds = min(FOLDS, np.unique(labels, return_counts=True)[1].min())
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ConvergenceWarning)  # weak regularization; others win
        if folds < 2:
            return model.fit(vectors, labels)
        splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
        search = GridSearchCV(model, {'C': STRENGTHS}, scoring='neg_log_loss', cv=splits)
        return search.fit(vectors, labels).best_estimator_
