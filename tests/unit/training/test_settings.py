"""Settings: values that don't change, what follows from them, and their other names."""

import copy
import dataclasses
import pickle

import pytest
from refusals import refuses

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.settings import ClassificationSettings, PretrainingSettings, TaggingSettings


def test_settings_do_not_change():
    first = ClassificationSettings(lr=0.5, max_len=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.lr = 0.25
    second = first.copy(lr=0.25)
    assert (first.lr, second.lr, second.max_length) == (0.5, 0.25, 7)
    assert first.given == second.given == {'lr', 'max_length'}
    assert first.with_defaults(epochs=9).given == first.given
    for again in (copy.copy(first), pickle.loads(pickle.dumps(first))):
        assert again == first != second and again.given == first.given


def test_values_follow_from_others():
    assert TaggingSettings(cased=True).dataset == 'book_corpus_wiki_en_cased'
    assert ClassificationSettings(labels='a, b').labels == ['a', 'b']
    tokens = PretrainingSettings(train_file='x', batch_tokens=99)
    assert (tokens.batch_size, tokens.use_avg_len, tokens.num_buckets) == (99, True, 10)
    assert tokens.copy(lr=0.5).batch_size == 99


#: settings that repeat a run from its settings.yaml, with values that a default contradicts
REPEATED = [
    ClassificationSettings(batch_tokens=64, keep_checkpoints=2, method='full', freeze='encoder'),
    ClassificationSettings(checkpoint='x', dev_split=0.5).with_defaults(batch_size=3),
    PretrainingSettings(train_file='x', batch_tokens=99, num_buckets=1),
    TaggingSettings(cased=True, output_dir='y', engine='mxnet'),
]


@pytest.mark.parametrize('settings', REPEATED)
def test_a_file_of_settings_repeats_them(settings):
    again = type(settings)(**settings.to_repeat())
    assert again.copy(output_dir=settings.output_dir) == settings
    assert again.given.issuperset(settings.given - {'output_dir'})
    assert again.is_given('keep_checkpoints') == settings.is_given('keep_checkpoints')


BAD_VALUES = [
    *(({'batch_tokens': 64, 'batch_size': size}, 'batch_tokens') for size in (16, 32)),
    ({'method': 'linear', 'freeze': 'encoder'}, 'method'),
    ({'engine': 'openvino'}, 'engine'),
    ({'lr': 'x'}, 'lr'),
    ({'lr': float('inf')}, 'lr'),
    ({'batch_size': True}, 'batch_size'),
    ({'hparams': 3}, 'hparams'),
    ({'resume': True, 'overwrite_output_dir': True}, 'resume'),
    ({'deploy': True}, 'deploy'),
    ({'epochs': 1, 'num_train_epochs': 1}, 'epochs'),
    ({'lr_schedule': 'lineer'}, 'lr_schedule'),
]


@pytest.mark.parametrize('values, field', BAD_VALUES)
def test_bad_values_name_their_field(values, field):
    for make in (ClassificationSettings, ClassificationSettings().copy):
        with refuses(field, kind=(InputError, UnknownNameError)):
            make(**values)
