"""Distillation: the losses by NumPy, the student's beginning, and what can't be."""

import mxnet as mx
import numpy as np
import pytest
from tiny import bert_config

from bert import BertForSequenceClassification
from model_zoo.batches import Sample
from model_zoo.batches.batch import make_batch
from model_zoo.errors import InputError
from model_zoo.tasks.distillation import Distillation, make_student, teacher_layers


def make(layers=4, labels=3, vocab_size=50, **changes):
    config = bert_config(
        vocab_size,
        num_hidden_layers=layers,
        max_position_embeddings=12,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **changes,
    )
    model = BertForSequenceClassification(config, num_labels=labels)
    mx.random.seed(3 + layers)
    model.initialize()
    model.hybridize(static_alloc=True)
    weight = model.classifier.weight
    weight.set_data(weight.data() * 100)  # else all scores are almost the same
    return model


def batch_of(labels):
    random = np.random.RandomState(5)
    lengths = (5, 8, 12)
    samples = [
        Sample(random.randint(0, 50, size).astype('int32'), np.zeros(size, 'int32'), label)
        for size, label in zip(lengths, labels)
    ]
    return make_batch(samples, 0, indices=np.arange(3))


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def states_of(model, batch):
    states, _ = model.bert(*batch.inputs, output_all_encoded_layers=True)
    return [each.asnumpy().astype('float64') for each in states]


@pytest.mark.parametrize('labels', [3, 1])
def test_losses(labels):
    values = [0, 2, 1] if labels == 3 else [0.5, 2.5, -1.0]
    student, teacher, batch = make(2, labels), make(4, labels), batch_of(values)
    scores, wanted = (
        model(*batch.inputs).asnumpy().astype('float64') for model in (student, teacher)
    )
    distillation = Distillation(student, teacher, temperature=3.0, weight=0.7, states_weight=0.25)
    assert distillation.layers == (2, 4)
    found = [each.asscalar() for each in distillation.losses(batch)]
    own, theirs = states_of(student, batch), states_of(teacher, batch)
    tokens = 5 + 8 + 12
    errors = [
        ((a - b) ** 2).mean(axis=-1).sum() / tokens for a, b in zip(own, (theirs[1], theirs[3]))
    ]
    if labels == 3:
        soft, wanted = log_softmax(scores / 3), log_softmax(wanted / 3)
        of_teacher = 9 * (np.exp(wanted) * (wanted - soft)).sum(axis=-1).mean()
        of_labels = -log_softmax(scores)[np.arange(3), values].mean()
    else:
        of_teacher = ((scores - wanted) ** 2).mean()
        of_labels = ((scores[:, 0] - values) ** 2).mean()
    expected = [0.25 * np.mean(errors), 0.7 * of_teacher, 0.3 * of_labels]
    # the scores differ by float32 rounding
    np.testing.assert_allclose(found, expected, rtol=2e-4)


def test_only_the_student_is_trained():
    student, teacher, batch = make(2), make(4), batch_of([0, 1, 2])
    objective = Distillation(student, teacher).objective()
    assert objective.counts(batch) == (25, 3, 3)
    before = teacher.classifier.weight.grad().asnumpy().copy()
    counts = objective.count([batch])
    sums = objective.backward([batch], counts, counts[0]).asnumpy()
    losses = [each.asscalar() for each in Distillation(student, teacher).losses(batch)]
    np.testing.assert_allclose(sums, [25 * losses[0], 3 * losses[1], 3 * losses[2]], rtol=1e-5)
    assert np.abs(student.bert.word_embed.weight.grad().asnumpy()).max() > 0
    np.testing.assert_array_equal(teacher.classifier.weight.grad().asnumpy(), before)


def test_a_student_begins_with_its_teachers_layers():
    teacher, batch = make(4), batch_of([0, 1, 2])
    student = make_student(teacher, (1, 4))
    assert student.config.num_hidden_layers == 2 and teacher.config.num_hidden_layers == 4
    own, theirs = (model._collect_params_with_prefix() for model in (student, teacher))
    assert len(own) < len(theirs)
    for name, parameter in own.items():
        name = name.replace('layers.1.', 'layers.3.')
        np.testing.assert_array_equal(parameter.data().asnumpy(), theirs[name].data().asnumpy())
    whole = make_student(teacher, (1, 2, 3, 4))
    np.testing.assert_array_equal(whole(*batch.inputs).asnumpy(), teacher(*batch.inputs).asnumpy())
    # a copy: the teacher stays what it is
    student.classifier.weight.set_data(mx.nd.zeros((3, 16)))
    assert np.abs(teacher.classifier.weight.data().asnumpy()).max() > 0


def test_layers():
    assert teacher_layers(2, 6) == (3, 6)
    assert teacher_layers(4, 6) == (1, 3, 4, 6)
    assert teacher_layers(3, 3) == (1, 2, 3)
    assert teacher_layers(2, 6, [1, 5]) == (1, 5)
    with pytest.raises(InputError):
        teacher_layers(5, 4)
    for layers in ([1], [0, 1], [1, 7]):
        with pytest.raises(InputError):
            teacher_layers(2, 6, layers)


@pytest.mark.parametrize('student', [{'vocab_size': 60}, {'hidden_size': 8}])
def test_models_that_do_not_fit(student):
    with pytest.raises(InputError):
        Distillation(make(2, **student), make(4))


def test_states_of_other_sizes_can_be_left_out():
    student, teacher, batch = make(2, hidden_size=8), make(4), batch_of([0, 1, 2])
    losses = Distillation(student, teacher, states_weight=0.0).losses(batch)
    assert losses[0].asscalar() == 0 and losses[1].asscalar() > 0
