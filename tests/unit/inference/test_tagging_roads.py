"""A trained tagger answers on every road what its report says: punctuation, hyphens, long texts."""

import importlib.util
import itertools
import json

import pytest
import tiny
from script_runs import load_script, run
from serving import Client

import model_zoo
from bert.tokenization import BasicTokenizer
from model_zoo import finetune
from model_zoo.inference.entities import groups_of_entities
from model_zoo.inference.server import build_app

NAMES = {
    'U.N.': 'ORG',
    'AT&T': 'ORG',
    "O'Neil": 'PER',
    'Coca-Cola': 'ORG',
    'Jean-Luc Picard': 'PER',
    'São Paulo': 'LOC',
    'Zoë': 'PER',
}
FORMS = [
    '{} is a well-known name .',
    'We heard of {} yesterday !',
    '" Yes , " said {} ( in 1998 ) 😀 .',
    'Is that {} ?',
    'He wrote to {} ; nobody answered : why ?',
    'They work for {} .',
]
LENGTH = 24


def row(form, name):
    """A sentence's words and labels."""
    words, labels = [], []
    for word in form.split():
        parts = name.split() if word == '{}' else [word]
        marks = [f'B-{NAMES[name]}', *[f'I-{NAMES[name]}'] * len(parts)] if word == '{}' else 'O'
        words += parts
        labels += marks[: len(parts)]
    return words, labels


ROWS = [row(form, name) for form, name in itertools.product(FORMS, NAMES)]
# of many windows
LONG = [tuple(sum(parts, []) for parts in zip(*ROWS[start::5])) for start in range(3)]
TRAIN, DEV = [*ROWS, *LONG], [*ROWS[::4], LONG[0]]
TEXTS = [' '.join(words) for words, _ in DEV]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tagger')
    words = {word for words, _ in ROWS for word in BasicTokenizer().tokenize(' '.join(words))}
    tiny.save_bert(folder / 'model', sorted(words), scale=0.1, max_position_embeddings=LENGTH)
    options = {'epochs': 15, 'lr': 5e-3, 'batch_size': 4, 'max_length': LENGTH, 'seed': 1}
    options['output_dir'] = folder / 'run'
    trained = finetune(folder / 'model', 'token-classification', TRAIN, DEV, **options)
    assert trained.scores['f1'] == 1
    return trained, folder / 'run'


@pytest.fixture(scope='module')
def reported(trained):
    """The entities of the dev set in the report: kind, start and end in the text."""
    found, lines = [], (trained[1] / 'dev_predictions.txt').read_text('utf-8').split('\n\n')
    for block in filter(None, lines):
        words, place = [], 0
        for line in block.strip('\n').split('\n'):
            word, _, label = line.split('\t')
            words.append({'entity': label, 'start': place, 'end': place + len(word)})
            place += len(word) + 1
        groups = groups_of_entities(words, trained[0].task.labels)
        found.append([(kind, g[0]['start'], g[-1]['end']) for kind, g in groups if kind != 'O'])
    assert len(found) == len(TEXTS) and any(end > 4 * LENGTH for _, _, end in found[-1])
    return found


def entities(results):
    return [[(each['entity_group'], each['start'], each['end']) for each in row] for row in results]


@pytest.mark.parametrize('engine', ['mxnet', 'onnxruntime', 'openvino'])
def test_every_engine_says_what_the_report_says(trained, reported, engine):
    if engine != 'mxnet' and importlib.util.find_spec(engine) is None:
        pytest.skip(f'{engine} is not installed')
    tagger = model_zoo.pipeline(trained[1] / 'best_model', engine=engine)
    assert entities(tagger(TEXTS)) == reported
    assert [entities([tagger(text)])[0] for text in TEXTS] == reported


def test_commands_and_servers_say_it(trained, reported, tmp_path):
    folder, file, output = trained[1] / 'best_model', tmp_path / 'in.txt', tmp_path / 'out.json'
    assert entities(trained[0](TEXTS)) == reported
    file.write_text('\n'.join(TEXTS), 'utf-8')
    assert run(load_script('tag'), folder, '--file', file, '--output', output) == 0
    found = [[] for _ in TEXTS]
    for record in json.loads(output.read_text('utf-8')):
        found[record['text']].append(record)
    assert entities(found) == reported
    client = Client(build_app({'tagger': model_zoo.pipeline(folder)}))
    assert entities(client.infer('tagger', TEXTS)) == reported
    client.models.close()


@pytest.mark.parametrize('name', NAMES)
def test_names_in_raw_text_end_before_the_full_stop(trained, name):
    for text in (f'They work for {name}.', f'"Yes," said {name} (in 1998) 😀.'):
        (found,) = trained[0](text)
        assert (found['word'], found['entity_group']) == (name, NAMES[name])
