"""A classifier's checkpoint owns its labels.

The names in the configuration (``id2label``) say what the outputs are, and a data set's labels are
matched to them by name. Without names, the format of the weights says which order they have:
GluonNLP's, or the originals' (pytorch-pretrained-BERT's and Google's).
"""

import contextlib
import dataclasses
import logging
import os
import re

from ..errors import InputError, UnknownNameError, ZooError
from ..opening import config_of_folder, small_files
from ..pretrained import get_entry, names_files, resolve
from ..pretrained.files import GLUONNLP, LABEL_ORDER, ORIGINALS
from ..util.files import write_json
from ..util.reading import read_json
from .classification_data import get_task, infer_labels

__all__ = ['adopt_labels', 'labels_of_folder', 'name_labels', 'write_labels']

logger = logging.getLogger(__name__)

_AUTHORS = {GLUONNLP: 'GluonNLP', ORIGINALS: 'pytorch-pretrained-BERT and Google'}
_NUMBERED = re.compile(r'LABEL_\d+')
_UNCLASSIFIED = {'swag', 'sentence_embedding'}  # what our other scripts write as the task
_EXPORTED = re.compile(r'(.+)-\d{4}\.params')


@dataclasses.dataclass(frozen=True)
class _Statement:
    """What a checkpoint says about a classifier's outputs."""

    model: str
    names: tuple[str, ...] | None = None
    task: str | None = None  # that it was trained for
    order: str | None = None  # None of a model without weights of its own
    reason: str = ''  # for the order
    of_transformers: bool = False

    @property
    def is_numbered(self):
        """Whether the names are transformers' placeholders."""
        if self.names is None:
            return self.of_transformers  # which leaves out LABEL_0 and LABEL_1
        positions = map(str, range(len(self.names)))
        return all(map(_NUMBERED.fullmatch, self.names)) or (
            self.task is None
            and all(name == position for name, position in zip(self.names, positions))
        )


def _names_in(fields, model):
    """The names in a configuration, or None."""
    labels = fields.get('id2label')
    if labels is None or labels == {}:
        return None
    if not isinstance(labels, dict) or set(labels) != {str(n) for n in range(len(labels))}:
        raise InputError(
            f'config.json of the model {model!r} has the id2label {labels!r}: write it as '
            '{"0": "first label", "1": "second label"} and so on'
        )
    return tuple(str(labels[str(number)]) for number in range(len(labels)))


def labels_of_folder(folder):
    """Return the names of a model's classes, or None if they are numbered or it has no folder."""
    names = _state(folder).names
    return None if names is None or all(map(_NUMBERED.fullmatch, names)) else list(names)


def _state(model, dataset=None, config=None):
    """The `_Statement` of a model's name, folder or file, and of another configuration for it."""
    model = os.fspath(model)
    if not names_files(model):
        with contextlib.suppress(UnknownNameError):  # who opens the model is told
            return _Statement(model, get_entry(*resolve(model, dataset)).labels)
        return _Statement(model)
    fields, files = config_of_folder(model), None
    with contextlib.suppress(InputError):
        fields = fields if config is None else read_json(config, shape=dict)
    with contextlib.suppress(ZooError):
        files = small_files(model)
    names = _names_in({**fields, **_fields_beside(files)}, model)
    task = fields.get('finetuning_task')
    task = (isinstance(task, str) and task) or None
    with contextlib.suppress(UnknownNameError):
        task = task and get_task(task).name
    if files is None:
        return _Statement(model, names, task)
    order, reason = files.label_order
    if fields.get(LABEL_ORDER) in (GLUONNLP, ORIGINALS):
        order, reason = fields[LABEL_ORDER], f'its configuration says {LABEL_ORDER}'
    by_transformers = order == ORIGINALS and 'transformers_version' in fields
    return _Statement(model, names, task, order, reason, by_transformers)


def _fields_beside(files):
    """The names beside an exported graph; see `write_labels`."""
    match = _EXPORTED.fullmatch(files.weights or '') if files else None
    path = f'{match[1]}-labels.json' if match else ''
    return read_json(path, shape=dict) if os.path.isfile(path) else {}


def write_labels(prefix, names):
    """Write the names of a block's outputs beside its exported graph."""
    if names:
        write_json(f'{prefix}-labels.json', {'id2label': _numbered(names)})


def _numbered(names):
    return {str(number): name for number, name in enumerate(names)}


def adopt_labels(
    task,
    model,
    labels=None,
    dataset=None,
    config=None,
    parameters=None,
    teacher=None,
    trains=False,
    order=GLUONNLP,
):
    """A task with its labels in the order of a model's outputs.

    Parameters
    ----------
    trains : bool
        Whether the model is to be trained. Its outputs keep their order if it was trained for the
        same labels; otherwise the order is `order`.
    """
    stated = _state(model, dataset, config)
    if parameters is not None:
        other = _state(parameters)
        stated = (
            other
            if other.names or not stated.names
            else dataclasses.replace(stated, order=other.order, reason=other.reason)
        )
    if trains:
        task = infer_labels(task)
    if labels is not None:
        return _override(task, labels, None if trains else stated)
    if teacher is not None:
        task = _follow(task, _state(teacher))
    if not trains:
        return _follow(task, stated)
    if task.regression:
        return task
    known = stated.names and task.match(stated.names)
    if teacher is None:
        return task.with_labels(known or task.in_order(order))
    if known and known != task.labels:
        raise InputError(
            f'the outputs of the model {model!r} are {", ".join(known)}, and those of its teacher '
            f'{teacher!r} {", ".join(task.labels)}: both must have one order'
        )
    return task


def _override(task, labels, stated):
    """The task with the labels that the user names."""
    if task.regression:
        raise InputError(f'{task.name} is a regression: leave out `labels`')
    ordered = task.match(labels)
    if ordered is None:
        raise InputError(
            f'{", ".join(labels)}: {task.name} has {", ".join(task.require_labels())}; '
            "give each once, in the order of the model's outputs",
            field='labels',
        )
    names = stated and stated.names
    if names and len(names) != len(ordered):
        _refuse(task, stated, names)
    if names and not stated.is_numbered and task.match(names) != ordered:
        logger.warning(
            'the outputs are read as %s, as `labels` says; the model calls them %s',
            ', '.join(ordered),
            ', '.join(names),
        )
    return task.with_labels(ordered)


def _follow(task, stated):
    """The task with the labels of a trained model."""
    known = None
    with contextlib.suppress(UnknownNameError):
        known = stated.task and get_task(stated.task)
    names = stated.names
    if names is None and known is not None and not known.regression:
        names = known.labels if task.regression else None
    else:
        is_unclassified = names is None and (known or stated.task in _UNCLASSIFIED)
        if is_unclassified or (names is not None and len(names) == 1):  # a regression's output
            names = ()
    if task.regression:
        if names:
            _refuse(task, stated, names)
    elif names == ():
        _refuse(task, stated, names)
    elif task.labels is None:
        task = _take_names(task, stated, known, names)
    else:
        task = task.with_labels(_in_model_order(task, stated, names))
    is_other = stated.task in _UNCLASSIFIED or (known is not None and known.name != task.name)
    # names that are words mean the same in another task
    if is_other and not task.is_custom and (task.regression or not task.has_words):
        raise InputError(
            f'the model {stated.model!r} was trained for {stated.task}, not for {task.name}; '
            'data of another task with the same labels goes with `task_name` custom'
        )
    return task


def _take_names(task, stated, known, names):
    """A task whose labels nobody has named, with the model's, or else with its file's."""
    if names is None and known is not None:  # version 0.2 wrote the task alone
        names = known.in_order(stated.order)
    inferred = infer_labels(task) if 'train' in task.files else task
    if names is None:
        return inferred
    named = task.with_labels(names)
    labels = inferred.labels or ()
    words = [label for label in labels if not label.isdigit() and not named.find_label(label)]
    if not stated.is_numbered or not words:
        return named
    if len(labels) != len(names):
        _refuse(inferred, stated, names)
    logger.warning(
        'the model only numbers its labels; its outputs are assumed to be %s, the labels of the '
        'file in alphabetical order',
        ', '.join(labels),
    )
    return inferred


def _in_model_order(task, stated, names):
    """The task's labels in the order of a model's outputs."""
    ordered = names and task.match(names)
    if ordered:
        return ordered
    if (names and not stated.is_numbered) or (names and len(names) != len(task.labels)):
        _refuse(task, stated, names)
    ordered = task.in_order(stated.order)
    if stated.order is None or not task.has_words:
        return ordered
    if not stated.is_numbered:
        logger.info(
            'the model has no label names; its outputs are assumed to be %s, the order of %s: %s',
            ', '.join(ordered),
            _AUTHORS[stated.order],
            stated.reason,
        )
        return ordered
    other = task.in_order('hub')
    logger.warning(
        'the model only numbers its labels; its outputs are assumed to be %s, the order of %s (%s).'
        ' `labels` names them in another order%s',
        ', '.join(ordered),
        _AUTHORS[stated.order],
        stated.reason,
        '' if other == ordered else f", such as the data set's own: {' '.join(other)}",
    )
    return ordered


def _refuse(task, stated, names):
    here, there = (
        f'tells {", ".join(classes)} apart' if classes else 'has no classes'
        for classes in (() if task.regression else task.require_labels(), names)
    )
    if stated.task is not None:
        raise InputError(
            f'the model {stated.model!r} was trained for {stated.task}, where it {there}; a model '
            f'for {task.name} {here}'
        )
    raise InputError(
        f'the model {stated.model!r} {there}, and {task.name} {here}; `labels` names the outputs '
        'in their order, if they are called otherwise there'
    )


_OF_A_TASK = (
    LABEL_ORDER,
    'finetuning_task',
    'id2label',
    'label2id',
    'problem_type',
    'task_specific_params',
    'text_pairs',
    'sentence_transformers',
    'sbert_ce_default_activation_function',
)


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
        extras['id2label'] = _numbered(labels)
        extras['label2id'] = {label: number for number, label in enumerate(labels)}
