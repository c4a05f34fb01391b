"""Labels in a model's files: what the outputs of its classifier mean."""

import dataclasses
import os
import re

from ..checkpoint.readers import SUMS
from ..errors import InputError
from ..util.choices import GLUONNLP, ORIGINALS
from ..util.files import write_json
from ..util.reading import read_json

__all__ = ['LABEL_ORDER', 'Labels', 'label_fields', 'label_order', 'write_labels']

#: field of a configuration that says which of them the outputs have
LABEL_ORDER = 'label_order'
_PLACEHOLDER = re.compile(r'LABEL_\d+')
_EXPORTED = re.compile(r'(.+)-\d{4}\.params')


@dataclasses.dataclass(frozen=True)
class Labels:
    """The labels of a classifier's outputs.

    Parameters
    ----------
    model : str
        Name or path of the model, for messages.
    names : tuple of str, optional
        The labels in the order of the outputs; None if the files don't name them.
    numbered : bool
        Whether the names only number the outputs: LABEL_0, which transformers writes or leaves out,
        or 0.
    order : str, optional
        Whose order the outputs have if nothing names them, `GLUONNLP` or `ORIGINALS`; None for a
        model without a classifier.
    reason : str
        Why it is that order.
    task : str, optional
        The task that the model was trained for.
    """

    model: str
    names: tuple[str, ...] | None = None
    numbered: bool = False
    order: str | None = None
    reason: str = ''
    task: str | None = None

    @classmethod
    def of(cls, model, files):
        """Return what a model's `Files` say."""
        fields = files.fields
        graph, beside = _EXPORTED.fullmatch(files.weights or ''), {}
        if graph:  # `write_labels` wrote beside it
            beside = read_json(f'{graph[1]}-labels.json', shape=dict, default={})
        names, task = _names({**fields, **beside}, model), None
        if isinstance(fields.get('finetuning_task'), str):
            task = fields['finetuning_task'] or None
        order, reason = label_order(files)
        if fields.get(LABEL_ORDER) in (GLUONNLP, ORIGINALS):
            order, reason = fields[LABEL_ORDER], f'its configuration says {LABEL_ORDER}'
        if names is None:  # transformers leaves out LABEL_0 and LABEL_1
            numbered = order == ORIGINALS and 'transformers_version' in fields
        else:
            positions = tuple(map(str, range(len(names))))
            numbered = are_placeholders(names) or (task is None and names == positions)
        return cls(model, names, numbered, order, reason, task)

    @property
    def given(self):
        """The names as a list; None without names, or if they are LABEL_0 and so on."""
        return None if self.names is None or are_placeholders(self.names) else list(self.names)


def are_placeholders(names):
    """Return whether names are LABEL_0 and so on."""
    return all(map(_PLACEHOLDER.fullmatch, names))


def label_order(files):
    """Return whose order the outputs of a model's `Files` have, and why."""
    folder = os.path.dirname(files.weights or files.config or files.vocab or '')
    if os.path.isfile(os.path.join(folder, SUMS)):
        return GLUONNLP, 'this project saved the model'
    name = os.path.basename(files.weights or '')
    if name.endswith('.params'):
        return GLUONNLP, f"{name} is MXNet's"
    library = 'TensorFlow' if name.endswith('.index') else 'PyTorch'
    return ORIGINALS, f"{name or 'the model'} is {library}'s"


def label_fields(names):
    """Return the fields of a configuration that name a classifier's outputs."""
    return {
        'id2label': {str(number): name for number, name in enumerate(names)},
        'label2id': {name: number for number, name in enumerate(names)},
    }


def _names(fields, model):
    labels = fields.get('id2label')
    if labels is None or labels == {}:
        return None
    if not isinstance(labels, dict) or set(labels) != {str(n) for n in range(len(labels))}:
        raise InputError(f'{model!r}: id2label must be as {{"0": "bad"}}, not {labels!r:.200}')
    return tuple(str(labels[str(number)]) for number in range(len(labels)))


def write_labels(prefix, names):
    """Write the names of a block's outputs beside its exported graph."""
    if names:
        write_json(f'{prefix}-labels.json', {'id2label': label_fields(names)['id2label']})
