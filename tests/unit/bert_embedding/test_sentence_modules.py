"""Models of sentence-transformers give that library's vectors."""

import json
import shutil

import numpy as np
import pytest
from arrays import stored
from json_files import change_json
from refusals import refuses

import model_zoo
from bert_embedding import BertEmbedding
from bert_embedding.cli import main
from model_zoo.checkpoint.tensor_files import write_safetensors
from model_zoo.errors import InputError, UnknownNameError, ZooError


@pytest.fixture
def folder(fixtures, tmp_path):
    """A copy of one of the models."""
    source = fixtures / 'sentence_transformers'
    return lambda name: shutil.copytree(source / name, tmp_path / name)


@pytest.fixture
def expected(fixtures):
    return stored(fixtures / 'sentence_transformers' / 'expected.npz')


@pytest.fixture
def sentences(fixtures):
    return json.loads((fixtures / 'sentence_transformers' / 'sentences.json').read_text())


def close(ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize('name', ['today', 'joined', 'of_2020'])
def test_same_vectors(folder, expected, sentences, name, tmp_path):
    """Poolings, dense layers, normalization, the maximal length, prompts; today's files and old."""
    embedding = BertEmbedding(folder(name))
    close(embedding.sentence_vectors(sentences), expected[name])
    if name != 'of_2020':
        found = embedding.sentence_vectors(sentences, prompt_name='query')
        close(found, expected[f'{name} query'])
        found = embedding.sentence_vectors(sentences, prompt='the dog ')
        close(found, expected[f'{name} prompt'])
        assert not np.allclose(expected[f'{name} query'], expected[name], atol=1e-2)
    assert embedding.sentence_vectors([]).shape == (0, expected[name].shape[1])
    archive = shutil.make_archive(str(tmp_path / 'archive'), 'gztar', tmp_path / name)
    for where in (tmp_path / name, archive):
        pipe = model_zoo.pipeline('feature-extraction', where)
        close(np.array(pipe(sentences, pooling='model', return_tensors=True)), expected[name])


def test_what_is_asked_for_wins(folder, sentences):
    embedding = BertEmbedding(model=folder('today'))
    means = embedding.sentence_vectors(sentences, 'mean')
    assert means.shape == (len(sentences), 8) and embedding.units == 8
    lengths = np.linalg.norm(embedding.sentence_vectors(sentences, 'cls', normalize=True), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)
    with pytest.raises(UnknownNameError):
        embedding.sentence_vectors(sentences, prompt_name='title')
    assert embedding.encode(sentences, truncate_dim=3).shape == (len(sentences), 3)
    for size in (0, 2.0):
        with pytest.raises(InputError):
            embedding.encode(sentences, truncate_dim=size)
    assert embedding.max_seq_length == 12
    assert BertEmbedding(model=folder('joined'), max_seq_length=5).max_seq_length == 5


def test_command(folder, expected, sentences, tmp_path):
    output = str(tmp_path / 'vectors.npz')
    argv = ['--model', str(folder('today')), '--sentences', *sentences[:2], '--output', output]
    main([*argv, '--pooling', 'model', '--prompt_name', 'query'])
    (vectors,) = (each for each in stored(output).values() if each.shape == (2, 5))
    close(vectors, expected['today query'][:2])
    with refuses('prompt'):
        main([*argv, '--prompt', 'query: '])


def change(name, **fields):
    return lambda path: change_json(path / name, **fields)


def change_module(kind, where):
    def edit(path):
        modules = json.loads((path / 'modules.json').read_text())
        modules[2].update(type=f'sentence_transformers.models.{kind}', path=where)
        (path / 'modules.json').write_text(json.dumps(modules))

    return edit


POOLING, DENSE, TEXTS = (
    '1_Pooling/config.json',
    '2_Dense/config.json',
    'config_sentence_transformers.json',
)
WEIGHTS = {'linear.weight': np.ones((3, 4, 5), 'f4'), 'linear.bias': np.ones(3, 'f4')}
EDITS = [
    change_module('LSTM', '2_LSTM'),
    *(change_module('Dense', where) for where in ('../elsewhere', '/tmp', 3, '\ud800')),
    lambda path: (path / 'modules.json').write_text('{'),
    *(change(POOLING, pooling_mode=mode) for mode in ('median', 5, [['mean']], ['mean', 'cls'])),
    *(change(DENSE, activation_function=name) for name in (None, 'torch.nn.GELU')),
    *(change(TEXTS, prompts=prompts) for prompts in ([1], {'a': 1})),
    *(change(TEXTS, truncate_dim=size) for size in (0, True, '8')),
    *(change(DENSE, **fields) for fields in ({'use_residual': 1}, {'dropout': 0.1})),
    change(DENSE, use_residual=True),  # without its weights
    change(TEXTS, default_prompt_name=[]),
    lambda path: (path / '2_Dense' / 'model.safetensors').unlink(),
    lambda path: write_safetensors(str(path / '2_Dense' / 'model.safetensors'), WEIGHTS),
]


#: a field that isn't read, and what it may not be
UNREAD = [
    (TEXTS, 'query_length', 32),
    (POOLING, 'token_weights', 'idf'),
    (DENSE, 'module_output_name', 'scaled'),
    (DENSE, 'module_input_name', 'token_embeddings'),
    ('sentence_bert_config.json', 'model_args', {'trust_remote_code': True}),
]


@pytest.mark.parametrize('name, field, value', UNREAD)
def test_fields_are_refused_by_name(folder, name, field, value):
    path = folder('today')
    change_json(path / name, **{field: value})
    with pytest.raises(InputError) as caught:
        BertEmbedding(path)
    assert caught.value.field == field
    change_json(path / name, **{field: None})  # is as if it weren't there
    BertEmbedding(path)


REFUSED = [
    (TEXTS, 'model_type', 'SparseEncoder'),
    (TEXTS, 'similarity_fn_name', 'angle'),
    ('sentence_bert_config.json', 'transformer_task', 'fill-mask'),
    ('sentence_bert_config.json', 'module_output_name', 'sentence_embedding'),
    ('sentence_bert_config.json', 'modality_config', {'image': {'method': 'forward'}}),
]


@pytest.mark.parametrize('edit', [*EDITS, *(change(n, **{f: v}) for n, f, v in REFUSED)])
def test_folders_that_are_refused(folder, edit):
    path = folder('today')
    edit(path)
    with pytest.raises(ZooError):
        BertEmbedding(path)
