"""A trained tagger answers on every road what its report says: punctuation, hyphens, long texts."""

import importlib.util
import itertools
import json
import re

import pytest
import tiny
from json_files import cases
from script_runs import load_script, run
from serving import Client

import model_zoo
from bert.tokenization import BasicTokenizer
from model_zoo import finetune
from model_zoo.inference.entities import entity_parts
from model_zoo.inference.server import build_app

NAMES = cases('tagging_roads')['NAMES']
FORMS = cases('tagging_roads')['FORMS']
LENGTH = 24


def row(form, name):
    """The words and labels of a sentence."""
    words, _, rest = (part.split() for part in form.partition('{}'))
    parts, kind = name.split(), NAMES[name]
    marks = [f'B-{kind}', *[f'I-{kind}'] * (len(parts) - 1)]
    return [*words, *parts, *rest], [*'O' * len(words), *marks, *'O' * len(rest)]


ROWS = list(itertools.starmap(row, itertools.product(FORMS, NAMES)))
LONG = tuple(sum(parts, []) for parts in zip(*ROWS[::3]))  # of many windows
DEV = [*ROWS[::2], LONG]
TEXTS = [' '.join(words) for words, _ in DEV]
STARTS = [[0, *itertools.accumulate(len(word) + 1 for word in words[:-1])] for words, _ in DEV]


@pytest.fixture(scope='module')
def run_folder(tmp_path_factory):
    """The folder of a training; its tagger has learned something, but not everything."""
    folder = tmp_path_factory.mktemp('tagger')
    words = {word for words, _ in ROWS for word in BasicTokenizer().tokenize(' '.join(words))}
    tiny.save_bert(folder / 'model', sorted(words), scale=0.1, max_position_embeddings=LENGTH)
    options = {'epochs': 6, 'lr': 5e-3, 'batch_size': 4, 'max_length': LENGTH}
    model, options['output_dir'] = folder / 'model', folder / 'run'
    trained = finetune(model, 'token-classification', [*ROWS, LONG], DEV, **options)
    assert trained.scores['f1'] > 0.3
    assert_reported(trained(TEXTS), folder / 'run')
    return folder / 'run'


def assert_reported(results, folder):
    """The entities have the F1 of the report, and where words begin the labels of its file."""
    found = [{(each['start'], each['end']): each['entity_group'] for each in r} for r in results]
    kinds = [
        [next((k for (s, e), k in spans.items() if s <= start < e), 'O') for start in starts]
        for spans, starts in zip(found, STARTS)
    ]
    lines = (folder / 'dev_predictions.txt').read_text('utf-8').split('\n\n')
    labels = [[line.split('\t')[2] for line in each.split('\n') if line] for each in lines]
    assert kinds == [[entity_parts(label)[1] for label in each] for each in labels if each]

    found = {(n, *span, kind) for n, spans in enumerate(found) for span, kind in spans.items()}
    gold, names = set(), '|'.join(map(re.escape, NAMES))
    for number, text in enumerate(TEXTS):
        gold.update((number, *m.span(), NAMES[m.group()]) for m in re.finditer(names, text))
    scores = json.loads((folder / 'results.json').read_text('utf-8'))['best_model']['dev']
    assert scores['f1'] == pytest.approx(2 * len(gold & found) / (len(gold) + len(found)))


@pytest.mark.parametrize('engine', ['mxnet', 'onnxruntime', 'openvino'])
def test_every_engine_says_what_the_report_says(run_folder, engine):
    if engine != 'mxnet' and importlib.util.find_spec(engine) is None:
        pytest.skip(f'{engine} is not installed')
    tagger = model_zoo.pipeline(run_folder / 'best_model', engine=engine)
    assert_reported(tagger(TEXTS), run_folder)
    assert_reported([tagger(text) for text in TEXTS], run_folder)


def test_commands_and_servers_say_it(run_folder, tmp_path):
    folder, file, output = run_folder / 'best_model', tmp_path / 'in.txt', tmp_path / 'out.json'
    file.write_text('\n'.join(TEXTS), 'utf-8')
    assert run(load_script('tag'), folder, '--file', file, '--output', output) == 0
    found = [[] for _ in TEXTS]
    for record in json.loads(output.read_text('utf-8')):
        found[record['text']].append(record)
    assert_reported(found, run_folder)
    client = Client(build_app({'tagger': model_zoo.pipeline(folder)}))
    assert_reported(client.infer('tagger', TEXTS), run_folder)
    client.models.close()


def test_raw_texts_have_the_same_entities(run_folder):
    """Where punctuation stands at the words, full stops too, and there is other white space."""
    tagger = model_zoo.pipeline(run_folder / 'best_model')
    raw = [re.sub(r' ([.,!?;:)])', r'\1', text).replace('( ', '(') for text in TEXTS]
    assert 'They work for AT&T.' in raw
    answers = [
        [
            [(e['entity_group'], ''.join(e['word'].split())) for e in found]
            for found in tagger(texts)
        ]
        for texts in (TEXTS, raw, [text.replace(' ', '\n ') for text in TEXTS])
    ]
    assert answers[0] == answers[1] == answers[2]
