"""Distillation: a small classifier learns from a large one."""

import dataclasses
import re
from typing import Optional, Tuple

import mxnet as mx

from ...errors import InputError
from ...layers.losses import cross_entropy, distillation_loss, mean_squared_error, states_error
from ...training.objective import Objective

__all__ = ['Distillation', 'make_student', 'teacher_layers']

_LAYER = re.compile(r'(encoder\.layers\.)(\d+)(?=\.)')


def teacher_layers(student, teacher, layers=None):
    """The teacher's layers that a student's layers learn from.

    Parameters
    ----------
    student, teacher : int
        Their numbers of layers.
    layers : sequence of int, optional
        One for each layer of the student, from 1; default: evenly spaced, up to the teacher's last.

    Returns
    -------
    tuple of int
        From 1.

    Raises
    ------
    InputError
        If that can't be.
    """
    if student > teacher:
        raise InputError(f'a student of {student} layers has more than its teacher, {teacher}')
    if layers is None:
        return tuple((number + 1) * teacher // student for number in range(student))
    layers = tuple(layers)
    if len(layers) != student or not all(1 <= layer <= teacher for layer in layers):
        raise InputError(
            f'the teacher\'s layers {" ".join(map(str, layers))}: give {student} numbers, one for '
            f'each layer of the student, from 1 to {teacher}'
        )
    return layers


def make_student(teacher, layers, ctx=None):
    """A smaller model that begins with layers of its teacher.

    Parameters
    ----------
    teacher : BertTask
        Initialized.
    layers : sequence of int
        The teacher's layers that the student begins with, from 1.
    ctx : mxnet.Context or list of mxnet.Context, optional

    Returns
    -------
    BertTask
        Hybridized; everything but the layers left out is the teacher's.
    """
    config = teacher.config.copy()
    config.num_hidden_layers = len(layers)
    student = type(teacher)(config, dropout=teacher.dropout_rate)
    student.initialize(ctx=ctx or mx.cpu())
    theirs = teacher._collect_params_with_prefix()
    for name, parameter in student._collect_params_with_prefix().items():
        name = _LAYER.sub(lambda match: f'{match[1]}{layers[int(match[2])] - 1}', name)
        parameter.set_data(theirs[name].data(theirs[name].list_ctx()[0]))
    student.hybridize(static_alloc=True)
    return student


@dataclasses.dataclass
class Distillation:
    """What a classifier learns from its teacher.

    The objective is ``(1 - weight)`` times the loss of the labels, ``weight`` times that of the
    teacher's scores (see `model_zoo.layers.losses.distillation_loss`; of a regression the mean
    squared error), and ``states_weight`` times the mean squared error of the layers' states.

    Parameters
    ----------
    student, teacher : BertForSequenceClassification
        Or a variant's. Only the student is trained. Their backbones return the states of all layers
        from then on.
    layers : tuple of int
        See `teacher_layers`.
    temperature : float
        Of the probabilities.
    weight : float
        From 0 to 1.
    states_weight : float
        0 leaves the states out; else both have states of the same size.

    Raises
    ------
    InputError
        If the two don't fit one another.
    """

    student: mx.gluon.Block
    teacher: mx.gluon.Block
    layers: Optional[Tuple[int, ...]] = None
    temperature: float = 2.0
    weight: float = 0.5
    states_weight: float = 1.0

    def __post_init__(self):
        own, theirs = self.student.config, self.teacher.config
        self.layers = teacher_layers(own.num_hidden_layers, theirs.num_hidden_layers, self.layers)
        if self.student.num_labels != self.teacher.num_labels:
            raise InputError(
                f'the student has {self.student.num_labels} labels, and its teacher '
                f'{self.teacher.num_labels}'
            )
        if own.vocab_size != theirs.vocab_size:
            raise InputError(
                f'the student has {own.vocab_size} tokens, and its teacher {theirs.vocab_size}: '
                'both must have the same vocabulary'
            )
        if self.states_weight and own.hidden_size != theirs.hidden_size:
            raise InputError(
                f'the states of the student have {own.hidden_size} units, and those of its teacher '
                f'{theirs.hidden_size}: they can be compared only if these are the same'
            )
        for model in (self.student, self.teacher):
            model.base.output_all_encodings = True

    def losses(self, batch):
        """The losses of states, teacher's scores and labels, weighted.

        Parameters
        ----------
        batch : model_zoo.batches.Batch

        Returns
        -------
        list of NDArray, shape (1,)
        """
        with mx.autograd.pause(train_mode=False):
            their_scores, their_states = _run(self.teacher, batch)
        scores, states = _run(self.student, batch)
        error = mx.nd.zeros((1,), ctx=scores.context)
        if self.states_weight:
            error = mx.nd.add_n(*[
                states_error(mx.nd, own, their_states[layer - 1], batch.valid_length)
                for own, layer in zip(states, self.layers)
            ]) / len(self.layers)  # fmt: skip
        if self.student.num_labels == 1:
            of_teacher = mean_squared_error(mx.nd, scores, their_scores)
            of_labels = mean_squared_error(mx.nd, scores, batch.labels)
        else:
            of_teacher = distillation_loss(mx.nd, scores, their_scores, self.temperature)
            of_labels = cross_entropy(mx.nd, scores, batch.labels)
        return [
            self.states_weight * error, self.weight * of_teacher, (1 - self.weight) * of_labels
        ]

    def objective(self):
        """For `TrainingLoop`.

        Returns
        -------
        Objective
        """

        def counts(batch):
            size = len(batch.indices)
            return float(batch.valid_length.sum().asscalar()), size, size

        return Objective(self.losses, counts, ('states', 'teacher', 'labels'))


def _run(model, batch):
    """The scores of a batch, and the states of all layers."""
    encoded = model.encode(*batch.inputs)
    return model.classifier(model._pool(mx.nd, encoded)), encoded.states
