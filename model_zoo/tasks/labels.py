"""A classifier's checkpoint owns its labels, and a data set's labels are matched to them.

The names in the configuration say what the outputs are. Without names, the format of the weights
says whose order they have: GluonNLP's, or pytorch-pretrained-BERT's and Google's. `Labels` has what
a checkpoint says. What follows from it:

===========================  ==================  =====================  ============================
the checkpoint               a data set with     a data set without     a regression
                             known labels        known labels
===========================  ==================  =====================  ============================
names its labels             these, if they      these                  refused
                             match, or refused
numbers its labels           in its order        the file's words, or   refused
                                                 the numbers
says nothing                 in its order        the file's             taken
has no classes               refused             refused                taken
===========================  ==================  =====================  ============================
"""

import contextlib
import dataclasses
import logging

from ..errors import InputError, UnknownNameError
from ..inference.questions import READER
from ..pretrained import find_files
from ..pretrained.labels import LABEL_ORDER, Labels, label_fields
from ..util.choices import GLUONNLP, ORIGINALS
from .classification_data import get_task, infer_labels

__all__ = ['match_labels', 'name_labels']

logger = logging.getLogger(__name__)

_AUTHORS = {GLUONNLP: 'GluonNLP', ORIGINALS: 'pytorch-pretrained-BERT and Google'}
_UNCLASSIFIED = {'swag', 'sentence_embedding'}  # tasks of other scripts, which have no classes


def match_labels(task, located, labels=None, parameters=None, trains=False, order=GLUONNLP):
    """Return a data set with its labels in the order of a model's outputs.

    Parameters
    ----------
    task : DataSet
    located : Located
        The model.
    labels : sequence of str, optional
        The labels in the order of the outputs, which the user names.
    parameters : str, optional
        File of the weights, if they aren't the model's.
    trains : bool
        Whether the model is to be trained. Its outputs keep their order if it was trained for the
        same labels; otherwise the order is `order`.
    """
    stated = located.labels
    if parameters is not None:
        other = Labels.of(parameters, find_files(path=parameters, vocab=False))
        if other.names is None and stated.names is not None:
            other = dataclasses.replace(stated, order=other.order, reason=other.reason)
        stated = other
    if trains:
        task = infer_labels(task)
    if labels is not None:
        return _in_users_order(task, labels, None if trains else stated)
    if not trains:
        return _follow(task, stated)
    if not task.target.has_classes:
        return task
    known = stated.names and task.target.match(stated.names)
    return task.with_labels(known or task.target.in_order(order))


def _in_users_order(data_set, labels, stated):
    """Return the data set with the labels in the order that the user names."""
    ordered = data_set.target.match(labels) if data_set.target.has_classes else None
    if ordered is None:
        ours = ', '.join(data_set.labels or ['which has none'])
        problem = f"must be {data_set.name}'s, {ours}, in the order of the outputs"
        raise InputError(f'{", ".join(labels)}: {problem}', field='labels')
    names = stated and stated.names
    if names and len(names) != len(ordered):
        _refuse(data_set, stated, names)
    if names and not stated.numbered and data_set.target.match(names) != ordered:
        ours, theirs = ', '.join(ordered), ', '.join(names)
        logger.warning('the outputs are read as %s; the model calls them %s', ours, theirs)
    return data_set.with_labels(ordered)


def _follow(data_set, stated):
    """Return the data set with the labels of a trained model: the table above."""
    known, target, names = None, data_set.target, stated.names
    with contextlib.suppress(UnknownNameError):
        known = stated.task and get_task(stated.task)
    if names is not None:
        has_classes = len(names) > 1
    elif known is not None:
        has_classes = known.target.has_classes
    else:  # nothing says it, except for these tasks
        has_classes = stated.task not in _UNCLASSIFIED and target.has_classes
    if has_classes != target.has_classes:
        _refuse(data_set, stated, (names or known.labels) if has_classes else ())
    if target.has_classes and target.labels is None:
        data_set = _with_names(data_set, stated, known)
    elif target.has_classes:
        data_set = data_set.with_labels(_ordered(data_set, stated))
    is_other = stated.task in _UNCLASSIFIED or (known is not None and known.name != data_set.name)
    # names that are words mean the same in another task
    if is_other and not data_set.is_custom and not (target.has_classes and target.has_words):
        problem = f'the model {stated.model!r} was trained for {stated.task}, not {data_set.name}'
        raise InputError(f'{problem}: use `task_name` custom for other data with the same labels')
    return data_set


def _with_names(data_set, stated, known):
    """Return a data set whose labels nobody has named with the model's, or else its file's."""
    names = stated.names
    if names is None and known is not None:  # version 0.2 wrote the task alone
        names = known.target.in_order(stated.order)
    inferred = infer_labels(data_set) if 'train' in data_set.files else data_set
    if names is None:
        return inferred
    named, labels = data_set.with_labels(names), inferred.labels or ()
    if not stated.numbered or all(each.isdigit() or named.target.find(each) for each in labels):
        return named
    if len(labels) != len(names):
        _refuse(inferred, stated, names)
    problem = 'the model only numbers its labels; they are assumed to be %s, as sorted in the file'
    logger.warning(problem, ', '.join(labels))
    return inferred


def _ordered(data_set, stated):
    """Return the known labels of a data set in the order of a model's outputs."""
    target, names = data_set.target, stated.names
    ordered = names and target.match(names)
    if ordered:
        return ordered
    if names and (not stated.numbered or len(names) != len(target.labels)):
        _refuse(data_set, stated, names)
    ordered = target.in_order(stated.order)
    if stated.order is None or not target.has_words:
        return ordered
    hint, other = '', target.in_order('hub')
    if stated.numbered:
        hint = '; `labels` names them in another order'
        hint += f", such as the data set's own: {' '.join(other)}" if other != ordered else ''
    problem = "the model doesn't name its labels; they are assumed to be %s, the order of %s: %s%s"
    shown = ', '.join(ordered), _AUTHORS[stated.order], stated.reason, hint
    logger.log(logging.WARNING if stated.numbered else logging.INFO, problem, *shown)
    return ordered


def _refuse(data_set, stated, names):
    theirs, ours = (', '.join(classes or ['no classes']) for classes in (names, data_set.labels))
    trained = f'was trained for {stated.task} and ' if stated.task is not None else ''
    problem = f'the model {stated.model!r} {trained}has {theirs}, and {data_set.name} {ours}'
    raise InputError(f"{problem}; `labels` names the model's outputs in their order")


_LABELS = LABEL_ORDER, 'id2label', 'label2id', 'problem_type', 'label_scale'
_TEXTS = 'text_columns', 'text_pairs', 'finetuning_task', 'task_specific_params', READER
_OF_A_TASK = (*_LABELS, *_TEXTS, 'sentence_transformers', 'sbert_ce_default_activation_function')


def name_labels(model, task=None, labels=None):
    """Write the task and the names of its classes into the configuration of `model`.

    What the configuration says of an earlier task goes.
    """
    extras = model.config.extras
    for name in _OF_A_TASK:
        extras.pop(name, None)
    if task is not None:
        extras['finetuning_task'] = task
    if labels is not None:
        extras.update(label_fields(labels))
