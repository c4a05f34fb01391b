"""The names of the classes of a trained model, in its ``config.json`` as transformers writes them.
"""

import json
import os

from ..errors import InputError

__all__ = ['check_labels', 'labels_of_folder', 'name_labels']


def labels_of_folder(folder):
    """The classes of a model that a training script saved.

    Parameters
    ----------
    folder : str
        Or a model's name.

    Returns
    -------
    list of str or None
        None if there is no such folder, or the model wasn't trained for a task by us.

    Raises
    ------
    InputError
        If the configuration names the classes in another form.
    """
    try:
        with open(os.path.join(folder, 'config.json'), encoding='utf-8') as file:
            config = json.load(file)
    except (OSError, ValueError):
        return None  # no folder; one with a bad configuration is complained about by the model
    if not isinstance(config, dict) or not {'finetuning_task', 'id2label'} <= set(config):
        return None
    labels = config['id2label']
    if not isinstance(labels, dict) or set(labels) != {str(n) for n in range(len(labels))}:
        raise InputError(
            f'config.json of the model {folder!r} has the id2label {labels!r}: write it as '
            '{"0": "first label", "1": "second label"} and so on'
        )
    return [str(labels[str(number)]) for number in range(len(labels))]


def check_labels(task, folder):
    """Raise InputError if a model of ours was trained for other classes than the task's.

    Parameters
    ----------
    task : model_zoo.data.Task
    folder : str
        Or a model's name.
    """
    labels = labels_of_folder(folder)
    if labels is not None and not task.regression and labels != list(task.require_labels()):
        raise InputError(
            f'the model {folder!r} tells {", ".join(labels)} apart, and {task.name} has the labels '
            f'{", ".join(task.labels)}'
        )


def name_labels(model, task, labels=None):
    """Let the configuration of `model` name its task, and the classes that it tells apart.

    Parameters
    ----------
    model : ZooBlock
    task : str
    labels : sequence of str, optional
        In the order of their numbers.
    """
    extras = model.config.extras
    extras.update(architectures=[type(model).__name__], finetuning_task=task)
    if labels is not None:
        extras['id2label'] = {str(number): label for number, label in enumerate(labels)}
        extras['label2id'] = {label: number for number, label in enumerate(labels)}
