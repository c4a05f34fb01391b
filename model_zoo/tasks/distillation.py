"""Distillation: a small classifier learns from a large one."""

import copy
import dataclasses
import re

import mxnet as mx

from ..errors import InputError
from ..layers import losses
from ..opening import open_model
from ..training.objective import Objective

__all__ = ['Distillation', 'make_student', 'open_teacher', 'teacher_layers']

_LAYER = re.compile(r'(encoder\.layers\.)(\d+)(?=\.)')


def teacher_layers(student, teacher, layers=None):
    """Return the teacher's layers that a student's layers learn from.

    Parameters
    ----------
    layers : sequence of int, optional
        One for each layer of the student, from 1; default: evenly spaced, up to the teacher's last.
    """
    if student > teacher:
        raise InputError(f'a student of {student} layers has more than its teacher, {teacher}')
    if layers is None:
        return tuple((number + 1) * teacher // student for number in range(student))
    layers = tuple(layers)
    if len(layers) != student or not all(1 <= layer <= teacher for layer in layers):
        raise InputError(
            f'{layers}: must be {student} numbers from 1 to {teacher}', field='teacher_layers'
        )
    return layers


def make_student(teacher, layers, ctx=None, dtype='float32'):
    """Make a smaller model that starts from layers of its teacher."""
    config = copy.deepcopy(teacher.config)
    config.num_hidden_layers = len(layers)
    student = type(teacher)(config, dropout=teacher.dropout_rate)
    student.initialize(ctx=ctx or mx.cpu())
    theirs = teacher._collect_params_with_prefix()
    for name, parameter in student._collect_params_with_prefix().items():
        name = _LAYER.sub(lambda match: f'{match[1]}{layers[int(match[2])] - 1}', name)
        parameter.set_data(theirs[name].data(theirs[name].list_ctx()[0]))
    if dtype != 'float32':
        student.cast(dtype)
    student.hybridize(static_alloc=True)
    return student


@dataclasses.dataclass
class Distillation:
    """The objective of a classifier with a teacher.

    It is ``(1 - weight)`` times the loss of the labels, ``weight`` times the loss of the teacher's
    scores (see `model_zoo.layers.losses.distillation_loss`; for regression the mean squared error),
    and ``states_weight`` times the mean squared error of the layers' states.

    Parameters
    ----------
    student, teacher : BertForSequenceClassification
        Or a variant's. Only the student is trained. From then on, their backbones return the states
        of all layers.
    """

    student: mx.gluon.Block
    teacher: mx.gluon.Block
    layers: tuple[int, ...] | None = None
    temperature: float = 2.0
    weight: float = 0.5
    states_weight: float = 1.0

    def __post_init__(self):
        small, large = self.student.config, self.teacher.config
        self.layers = teacher_layers(small.num_hidden_layers, large.num_hidden_layers, self.layers)
        if small.vocab_size != large.vocab_size:
            raise InputError(
                f'the student has {small.vocab_size} tokens, and its teacher {large.vocab_size}: '
                'both must have the same vocabulary'
            )
        if self.states_weight and small.hidden_size != large.hidden_size:
            raise InputError(
                f'must be 0 for a student of {small.hidden_size} units and a teacher of '
                f'{large.hidden_size}',
                field='states_weight',
            )
        for model in (self.student, self.teacher):
            model.base.output_all_encodings = True

    def losses(self, batch):
        """Compute the weighted losses of states, teacher's scores and labels.

        Returns
        -------
        list of NDArray, shape (1,)
        """
        with mx.autograd.pause(train_mode=False):
            their_scores, their_states = _run(self.teacher, batch)
        scores, states = _run(self.student, batch)
        error = mx.nd.zeros((1,), ctx=scores.context)
        if self.states_weight:
            pairs = ((state, their_states[layer - 1]) for state, layer in zip(states, self.layers))
            errors = [losses.states_error(mx.nd, *pair, batch.valid_length) for pair in pairs]
            error = mx.nd.add_n(*errors) / len(errors)
        if self.student.num_labels == 1:
            of_teacher = losses.mean_squared_error(mx.nd, scores, their_scores)
            of_labels = losses.mean_squared_error(mx.nd, scores, batch.labels)
        else:
            of_teacher = losses.distillation_loss(mx.nd, scores, their_scores, self.temperature)
            of_labels = losses.cross_entropy(mx.nd, scores, batch.labels)
        return [self.states_weight * error, self.weight * of_teacher, (1 - self.weight) * of_labels]

    def objective(self):
        """Return the `Objective` of a training."""

        def counts(batch):
            size = len(batch.indices)
            return float(batch.valid_length.sum().asscalar()), size, size

        return Objective(self.losses, counts, ('states', 'teacher', 'labels'))


def _run(model, batch):
    """Return the scores of a batch, and the states of all layers."""
    encoded = model.encode(*batch.inputs)
    return model.classifier(model._pool(mx.nd, encoded)), encoded.states


def open_teacher(settings, num_labels, ctx):
    """Return the model that a student learns from, and its tokenizer."""
    options = {'ctx': ctx, 'num_labels': num_labels}
    block, tokenizer, _ = open_model(settings.teacher, 'classification', **options)
    if settings.dtype != 'float32':
        block.cast(settings.dtype)
    block.hybridize(static_alloc=True)
    return block, tokenizer
