"""What `Trained.save` writes is a folder of transformers and sentence-transformers as it is."""

import pytest
import tiny
from script_runs import load_script, run

import model_zoo
from bert import BertForSequenceClassification

transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

LONG = 'a b c d ' * 5
#: task, rows, settings, an example
TRAININGS = {
    'labels': ('text-classification', [(LONG, 'y'), ('c d', 'n')] * 4, {}, LONG),
    'pairs': (
        'text-classification', [('a', 'b', 'y'), ('c', 'd', 'n')] * 4, {},
        {'text': 'a', 'text_pair': 'c'},
    ),
    'numbers': ('text-classification', [('a b', 1.5), ('c d', 4.0)] * 4, {'regression': True}, 'a'),
    'several': (
        'text-classification', [('a b', ['x', 'y']), ('c', ['y'])] * 4, {'multi_label': True}, 'a'
    ),
    'tags': ('token-classification', [(['a', 'b'], ['B-X', 'O'])] * 4, {}, 'a b c'),
}  # fmt: skip
SMALL = {'epochs': 1, 'batch_size': 8, 'max_length': 9, 'seed': 1}


@pytest.fixture(scope='module')
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp('start')
    tiny.save_bert(folder, list('abcdefgh'))
    return str(folder)


@pytest.mark.parametrize('name', TRAININGS)
def test_transformers_answers_as_the_trained_model(start, tmp_path, name):
    task, rows, settings, item = TRAININGS[name]
    trained = model_zoo.finetune(start, task, rows, **SMALL, **settings)
    trained.save(tmp_path)
    theirs = transformers.pipeline(task, str(tmp_path))
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


def test_sentence_transformers_computes_the_trained_vectors(start, tmp_path):
    library = pytest.importorskip('sentence_transformers')
    rows = [('a b', 'b a', 1.0), ('c', 'd', 0.0)] * 4
    trained = model_zoo.finetune(start, 'sentence-similarity', rows, **SMALL)
    trained.save(tmp_path)
    theirs = library.SentenceTransformer(str(tmp_path))
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
