"""The zoo's models of all families: by name, from folders and the cache, and new ones."""

import shutil
from typing import NamedTuple

import gluonnlp
import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same, flatten
from json_files import cases
from refusals import refuses
from variant_models import write_family

import model_zoo
from model_zoo.errors import PretrainedNotFoundError, UnknownNameError
from model_zoo.layers.cells import padded_units
from model_zoo.pretrained import get_entry, list_pretrained, resolve_alias
from model_zoo.registry import get_family

pytestmark = pytest.mark.usefixtures('no_network')

#: name of a model -> its data set, its family, and other names that lead to both
NAMES = cases('opening')['NAMES']
#: names of models, which have their sizes
SIZES = sorted({entry.model for entry in list_pretrained()})
POSITIONS = {'gpt2': 1024, 'transfo': None, 'modernbert': 8192}
FIRST = 'ffn_1.weight', 'ffn.into.weight'
#: units of the first dense layer of a feed-forward layer, where these are not four times as many
INNER = {'modernbert_22_768_12': 2 * 1152, 'modernbert_28_1024_16': 2 * 2624}
SMALL = {'num_layers': 1, 'units': 16, 'num_heads': 2, 'hparam_allow_override': True}
#: family -> overrides, fields of its configuration, and overrides that are refused
OVERRIDES = cases('opening')['OVERRIDES']
WORDS = mx.nd.array([[1, 2, 3], [4, 0, 1]])


class Saved(NamedTuple):
    """A family's model in a folder."""

    model: str
    family: object
    alias: str
    folder: object
    block: object
    tokens: list


@pytest.fixture(scope='module', params=[name for name in NAMES if NAMES[name][1]])
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('zoo') / 'model'
    family = get_family(NAMES[request.param][1])
    block, tokenizer = write_family(family.name, folder)
    (alias, *_) = NAMES[request.param][2]
    return Saved(request.param, family, alias, folder, block, tokenizer.vocab.idx_to_token)


def assert_same_model(block, saved):
    """Assert that a block of the zoo has the weights of the saved block."""
    assert type(block) is saved.family.zoo_block
    ours, theirs = (each if saved.family.zoo_task else each.base for each in (block, saved.block))
    assert_same(flatten(ours(WORDS))[0], flatten(theirs(WORDS))[0], 1e-6)


@pytest.mark.parametrize('name', NAMES)
def test_other_names(name):
    dataset, _, others = NAMES[name]
    assert {name} <= {*model_zoo.list_models(name.partition('_')[0] + '*')}
    for other in (name, *others):
        assert resolve_alias(other) in ((name, dataset), (name, None))


@pytest.mark.parametrize('name', SIZES)
def test_sizes(name):
    """Layers, units and heads; four times as many inner units, and most positions."""
    vocab = gluonnlp.Vocab(gluonnlp.data.count_tokens(list('abcdefgh')))
    block, same = model_zoo.get_model(name, vocab=vocab, pretrained=False)
    assert same is vocab and name in model_zoo.list_models()
    shapes = {key: value.shape for key, value in block.parameters_by_name().items()}
    inner = max(shape[0] for key, shape in shapes.items() if key.endswith(FIRST))
    fields = 'num_layers', 'units', 'num_heads'
    if name.startswith('transfo_xl'):
        fields = 'n_layer', 'd_model', 'n_head'
    sizes = [int(part) for part in name.split('_')[-3:]]
    assert [getattr(block.config, field) for field in fields] == sizes
    assert inner == INNER.get(name, padded_units(4 * sizes[1]))
    assert block.context_length == POSITIONS.get(name.split('_')[0], 512)
    assert block.config.embedding_rows == len(vocab)
    with pytest.raises(RuntimeError):  # not initialized, as GluonNLP's
        next(iter(block.parameters_by_name().values())).data()


def test_a_folder_and_its_file(saved):
    for path in (saved.folder, saved.folder / 'model.params'):
        block, vocab = model_zoo.get_model(saved.model, pretrained=str(path))
        assert vocab.idx_to_token == saved.tokens
        assert_same_model(block, saved)
        block, same = model_zoo.get_model(saved.model, pretrained=str(path), vocab=vocab)
        assert same is vocab
        assert_same_model(block, saved)


def test_the_cache_and_a_root(saved, tmp_path):
    name = get_entry(saved.model, NAMES[saved.model][0]).full_name
    for root in (tmp_path / 'home' / 'models', tmp_path / 'mine'):
        shutil.copytree(saved.folder, root / name)
    contexts = [mx.cpu(0), mx.cpu(1)]
    for options in ({}, {'root': str(tmp_path / 'mine')}, {'ctx': contexts}):
        block, vocab = model_zoo.get_model(saved.model.upper(), **options)
        assert vocab.idx_to_token == saved.tokens
        assert_same_model(block, saved)
    assert all(each.list_ctx() == contexts for each in block.collect_params().values())
    block = saved.family.zoo_block.from_pretrained(saved.alias)
    assert_same_model(block, saved)
    block.save_pretrained(str(tmp_path / 'again'))  # with the vocabulary that it began with
    again, vocab = model_zoo.get_model(saved.model, pretrained=str(tmp_path / 'again'))
    assert vocab.idx_to_token == saved.tokens
    assert_same_model(again, saved)
    shutil.rmtree(tmp_path / 'home')
    for options in ({}, {'pretrained': False}):
        with pytest.raises(PretrainedNotFoundError):
            model_zoo.get_model(saved.model, **options)


def test_a_new_model(saved, tmp_path):
    vocab = model_zoo.get_model(saved.model, pretrained=str(saved.folder))[1]

    def get(**options):
        return model_zoo.get_model(saved.model, vocab=vocab, pretrained=False, **options)

    options, fields, refused = OVERRIDES.get(saved.family.name, ({}, {}, {}))
    options = {**SMALL, **options}
    block, same = get(**options, dropout=0.25)
    assert same is vocab and type(block) is saved.family.zoo_block
    assert block.config.to_dict().items() >= fields.items()
    block.initialize()
    outputs = flatten(block(WORDS))
    assert outputs[0].shape[:2] == (2, 3) and np.isfinite(outputs[0].asnumpy()).all()
    path = str(tmp_path / 'lone.params')  # whose architecture is known by name and overrides
    forms = ['native', 'gluonnlp' if 'gluonnlp' in block.mappings() else 'huggingface']
    for form in forms * ('cutoffs' not in options):  # which a file can't have otherwise
        block.save_parameters(path, format=form)
        again = model_zoo.get_model(saved.model, pretrained=path, vocab=vocab, **options)[0]
        assert_same(flatten(again(WORDS)), outputs, 1e-6)
    for name, value in refused.items():
        with refuses(says=name):
            get(**{**options, name: value})
    get(dropout=0)
    for name, wrong in (('num_layers', {}), ('num_layer', SMALL), ('drop', SMALL)):
        with refuses(says=name):
            get(**{**wrong, {'drop': 'dropout'}.get(name, name): 2})
    with pytest.raises(UnknownNameError):
        model_zoo.get_model(saved.model, dataset_name='none')


def test_a_large_vocabulary_of_transformer_xl_has_cutoffs():
    counter = gluonnlp.data.count_tokens(str(number) for number in range(50000))
    vocab = gluonnlp.Vocab(counter)
    config = model_zoo.get_model('transfo_xl_18_1024_16', vocab=vocab, pretrained=False)[0].config
    assert config.cutoffs == [20000, 40000] and config.embedding_units[2] == 64
