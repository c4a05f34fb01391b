"""The names of the classes of a trained model, in its ``config.json`` as transformers writes them.
"""

import os
import re

from ..errors import InputError
from ..pretrained import local_path
from ..util.files import read_json

__all__ = ['check_labels', 'labels_of_folder', 'name_labels']


def config_of_folder(folder):
    """The fields of a folder's ``config.json``, none if there is no such folder.

    A repository of the hub is a folder, too; see `model_zoo.pretrained.is_place`.
    """
    folder, _ = local_path(folder, weights=False, vocab=False)
    try:
        config = read_json(os.path.join(folder, 'config.json'))
    except InputError:
        return {}  # one with a bad configuration is complained about by the model
    return config if isinstance(config, dict) else {}


def labels_of_folder(folder):
    """The names of a model's classes.

    Parameters
    ----------
    folder : str
        Or a model's name.

    Returns
    -------
    list of str or None
        None if there is no such folder, or its configuration only numbers the classes.

    Raises
    ------
    InputError
        If the configuration names the classes in another form.
    """
    return _labels_in(config_of_folder(folder), folder)


def _labels_in(config, folder):
    labels = config.get('id2label')
    if labels is None or 'finetuning_task' not in config and _are_numbers(labels):
        return None
    if not isinstance(labels, dict) or set(labels) != {str(n) for n in range(len(labels))}:
        raise InputError(
            f'config.json of the model {folder!r} has the id2label {labels!r}: write it as '
            '{"0": "first label", "1": "second label"} and so on'
        )
    return [str(labels[str(number)]) for number in range(len(labels))]


def _are_numbers(labels):
    """Whether an id2label only has transformers' placeholder names."""
    return isinstance(labels, dict) and all(
        re.fullmatch(r'LABEL_\d+', str(label)) for label in labels.values()
    )


def check_labels(task, folder):
    """Raise InputError if one of our models was trained for another task.

    A custom task may be any other one with the same classes.

    Parameters
    ----------
    task : model_zoo.tasks.classification.Task
    folder : str
        Or a model's name.
    """
    config = config_of_folder(folder)
    trained = config.get('finetuning_task')
    if trained is None:
        return  # no folder, or not one of our training scripts'
    labels = _labels_in(config, folder)
    wanted = None if task.regression else list(task.require_labels())
    if labels != wanted:
        there, here = (
            'has no classes' if names is None else f'tells {", ".join(names)} apart'
            for names in (labels, wanted)
        )
        raise InputError(
            f'the model {folder!r} was trained for {trained}, where it {there}; a model for '
            f'{task.name} {here}'
        )
    if trained != task.name and 'custom' not in (trained, task.name):
        raise InputError(
            f'the model {folder!r} was trained for {trained}, not for {task.name}; data of another '
            'task with the same labels goes with --task_name custom'
        )


def name_labels(model, task, labels=None):
    """Write the task and the names of its classes into the configuration of `model`.

    Parameters
    ----------
    model : ZooBlock
    task : str
    labels : sequence of str, optional
        In the order of their numbers.
    """
    extras = model.config.extras
    extras['finetuning_task'] = task
    if labels is not None:
        extras['id2label'] = {str(number): label for number, label in enumerate(labels)}
        extras['label2id'] = {label: number for number, label in enumerate(labels)}
