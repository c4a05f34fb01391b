"""What a training writes is a folder of transformers and sentence-transformers as it is."""

import mxnet as mx
import numpy as np
import pytest
import tiny
import tiny_models
from script_runs import load_script, run

import model_zoo
from bert import BertForMaskedLM, BertForSequenceClassification
from model_zoo.opening import open_model

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

LONG = 'a b c d ' * 5
#: task, rows, settings, an example
TRAININGS = {
    'labels': ('text-classification', [(LONG, 'y'), ('c d', 'n')] * 4, {}, LONG),
    'pairs': (
        'text-classification',
        [('a', 'b', 'y'), ('c', 'd', 'n')] * 4,
        {},
        {'text': 'a', 'text_pair': 'c'},
    ),
    'numbers': ('text-classification', [('a b', 1.5), ('c d', 4.0)] * 4, {'regression': True}, 'a'),
    'several': (
        'text-classification',
        [('a b', ['x', 'y']), ('c', ['y'])] * 4,
        {'multi_label': True},
        'a',
    ),
    'tags': ('token-classification', [(['a', 'b'], ['B-X', 'O'])] * 4, {}, 'a b c'),
}
SMALL = {'epochs': 1, 'batch_size': 8, 'max_length': 9, 'seed': 1}


@pytest.fixture(scope='module')
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp('start')
    tiny.save_bert(folder, list('abcdefgh'))
    return str(folder)


def folder_of(place, tmp_path, start, *arguments, **settings):
    """A trained model, and a folder of it: of `Trained.save`, or what its command writes."""
    run = tmp_path / 'run' if place == 'best_model' else None
    trained = model_zoo.finetune(start, *arguments, output_dir=run, **settings)
    if run is None:
        trained.save(tmp_path / place)
    folder = (run or tmp_path) / place
    assert not list(folder.glob('*.params')) and (folder / 'model.safetensors').is_file()
    return trained, str(folder)


PLACES = pytest.mark.parametrize('place', ['saved', 'best_model'])


@PLACES
@pytest.mark.parametrize('name', TRAININGS)
def test_transformers_answers_as_the_trained_model(start, tmp_path, name, place):
    task, rows, settings, item = TRAININGS[name]
    trained, folder = folder_of(place, tmp_path, start, task, rows, **SMALL, **settings)
    theirs = transformers.pipeline(task, folder)
    assert theirs.tokenizer.model_max_length == 9
    if task == 'text-classification':
        ours, found = trained(item, top_k=None), theirs(item, top_k=None, truncation=True)
    else:
        ours = trained(item, aggregation_strategy='none', ignore_labels=[])
        found = theirs(item, ignore_labels=[''])
    keys = ours[0].keys() - {'score'}
    assert [{key: each[key] for key in keys} for each in found] == [
        {key: each[key] for key in keys} for each in ours
    ]
    assert [float(each['score']) for each in found] == pytest.approx(
        [each['score'] for each in ours], abs=1e-5
    )


#: task -> rows, settings, transformers' class
OTHERS = {
    'question-answering': (
        [('a', 'a b c d', 'b c', 2)] * 8,
        {'max_query_length': 3, 'max_length': 16},
        'QuestionAnswering',
    ),
    'multiple-choice': ([('a b', ['c', 'd'], 0), ('b', ['d', 'c'], 1)] * 4, {}, 'MultipleChoice'),
    'fill-mask': (['a b c', 'd e f', '', 'g h'] * 4, {}, 'MaskedLM'),
    'text-generation': (['a few words here'] * 20, {'max_length': 8}, 'CausalLM'),
}


@PLACES
@pytest.mark.parametrize('task', OTHERS)
def test_transformers_computes_the_trained_outputs(start, tmp_path, task, place):
    rows, settings, kind = OTHERS[task]
    if task == 'fill-mask':
        tiny.save_bert(tmp_path / 'masked', list('abcdefgh'), BertForMaskedLM)
        start = tmp_path / 'masked'
    if task == 'text-generation':
        (tmp_path / 'writer').mkdir()
        start = tiny_models.save_gpt2(tmp_path / 'writer')
    _, folder = folder_of(place, tmp_path, start, task, rows, **{**SMALL, **settings})
    theirs = getattr(transformers, f'AutoModelFor{kind}').from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    block, own_tokenizer, _ = open_model(folder)
    ids, encoded = tokenizer('a b c').input_ids, own_tokenizer.encode('a b c')
    assert list(getattr(encoded, 'input_ids', encoded)) == ids
    words = [ids, ids[::-1]]
    if task == 'multiple-choice':
        words = [words]
    with torch.no_grad():
        expected = theirs(torch.tensor(words)).to_tuple()
    words = mx.nd.array(words, dtype='int32')
    inputs = [words] if task == 'text-generation' else [words, mx.nd.zeros_like(words)]
    found = block(*inputs)
    found = found if isinstance(found, (list, tuple)) else [found]
    if task == 'question-answering':
        found = [np.stack([part.asnumpy() for part in found])]
        expected = [torch.stack(expected[:2])]
    found = found[0] if isinstance(found[0], np.ndarray) else found[0].asnumpy()
    np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-4)


@PLACES
def test_sentence_transformers_computes_the_trained_vectors(start, tmp_path, place):
    library = pytest.importorskip('sentence_transformers')
    rows = [('a b', 'b a', 1.0), ('c', 'd', 0.0)] * 4
    trained, folder = folder_of(place, tmp_path, start, 'sentence-similarity', rows, **SMALL)
    theirs = library.SentenceTransformer(folder)
    vectors = theirs.encode([LONG, 'c'])
    assert theirs.similarity(vectors, vectors)[0, 1].item() == pytest.approx(
        trained((LONG, 'c')), abs=1e-5
    )


def test_a_folder_is_converted_for_transformers_without_a_flag(tmp_path):
    source, out = tmp_path / 'source', str(tmp_path / 'out')
    tiny.save_bert(source, list('abcdefgh'), BertForSequenceClassification, ['x', 'y'])
    assert run(load_script('convert_checkpoint'), source, out) == 0
    (theirs,) = transformers.pipeline('text-classification', out)('a b')
    (ours,) = model_zoo.pipeline(str(source))('a b')
    assert theirs['label'] == ours['label'] and theirs['score'] == pytest.approx(ours['score'])
