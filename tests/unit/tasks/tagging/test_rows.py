"""Tags as people have them: rows of `datasets`, JSON and DataFrames, CoNLL-U, GermEval, schemes."""

import json
import os

import pytest
import tiny_models
from refusals import refuses
from tiny import SPECIAL

from bert import BertModel, BertTokenizer
from model_zoo import finetune
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.inference.entities import groups_of_entities
from model_zoo.tasks import tagging
from model_zoo.tasks.tagging import Sentence, TaggingSettings, TaggingTask, read_conll, write_conll
from model_zoo.tokenization.vocab import load_vocab

WORDS = [['Angela', 'sleeps'], ['in', 'Paris']]
NAMES = ['O', 'B-PER', 'I-PER', 'B-LOC']
NUMBERS = [[1, 0], [0, 3]]
TAGS = [[NAMES[number] for number in row] for row in NUMBERS]
GERMEVAL = (
    '#\thttp://de.wikipedia.org/wiki/Paris [2009-10-17]\n1\tAngela\tB-PER\tO\n2\tsleeps\tO\tO\n\n'
    '#\thttp://x [2009]\n1\tin\tO\tO\n2\tParis\tB-LOC\tO\n'
)
CONLLU = (
    '# sent_id = 1\n# text = Angela sleeps\n1-2\tAngelasleeps\t_\t_\n1\tAngela\t_\tB-PER\n'
    '2\tsleeps\t_\tO\n2.1\tdeep\t_\tO\n\n# newpar\n1\tin\t_\tO\n2\tParis\t_\tB-LOC\n'
)


def dataset(column, tags=NUMBERS):
    datasets = pytest.importorskip('datasets')
    kinds = {'tokens': datasets.Value('string'), column: datasets.ClassLabel(names=NAMES)}
    kinds = {name: datasets.Sequence(kind) for name, kind in kinds.items()}
    features = datasets.Features(kinds)
    return datasets.Dataset.from_dict({'tokens': WORDS, column: tags}, features=features)


def read(source, **options):
    """The labels and rows of a task's training set."""
    task = TaggingTask(TaggingSettings(output_dir='unused', train_file='unused', **options))
    rows = task.read(source, 'train')
    task.prepare({'train': rows})
    return task.labels, [(list(row.words), list(row.labels)) for row in rows]


@pytest.mark.parametrize('column', ['ner_tags', 'tags', 'labels', 'pos_tags'])
def test_classes_of_datasets_are_the_labels(tmp_path, column):
    expected = NAMES, list(zip(WORDS, TAGS))
    assert read(dataset(column)) == expected
    sets = {'train': dataset(column), 'validation': dataset(column)}
    pytest.importorskip('datasets').DatasetDict(sets).save_to_disk(tmp_path)
    task = TaggingTask(TaggingSettings(output_dir='unused', train_file=str(tmp_path)))
    assert [os.path.basename(path) for path in task.locate().values()] == ['train', 'validation']
    assert read(str(tmp_path / 'train')) == expected
    assert read(dataset(column).to_pandas(), labels=NAMES) == expected


def test_a_column_of_tags_is_named(tmp_path):
    rows = [{'tokens': w, 'pos_tags': [0, 0], 'chunk': tags} for w, tags in zip(WORDS, TAGS)]
    named = ['O', 'B-LOC', 'B-PER'], list(zip(WORDS, TAGS))
    assert read(rows, label_column='chunk') == named
    assert read([{**row, 'pos_tags': tags} for row, tags in zip(rows, TAGS)]) == named
    (tmp_path / 'rows.jsonl').write_text('\n'.join(map(json.dumps, rows)), 'utf-16')
    assert read(str(tmp_path / 'rows.jsonl'), label_column='chunk', encoding='utf-16') == named
    with refuses(line=0):
        read(rows, label_column='upos')


def test_numbers_are_names_or_ordered():
    assert read(list(zip(WORDS, NUMBERS)), labels=NAMES)[1] == list(zip(WORDS, TAGS))
    assert read([(['a', 'b', 'c'], [11, 2, 0])])[0] == ['0', '2', '11']


@pytest.mark.parametrize(
    'row', [(['a', 'b'], ['O', None]), (['a'], [1.5]), (['a', 'b'], ['O']), (['a'], 'O'), ('a', [])]
)
def test_bad_rows_are_refused(row):
    with refuses(says='row 1'):
        read([(['a'], ['O']), row])


TEXT, SPANS = 'Jo (AT&T) in New York.', [(4, 8, 'ORG'), (13, 21, 'LOC'), (0, 2, 'PER')]
OFFSETS = [{'id': 1, 'start_offset': s, 'end_offset': e, 'label': k} for s, e, k in SPANS]
STARTS = [{'start': s, 'end': e, 'label': k} for s, e, k in SPANS]
TOLD = [
    {'text': TEXT, 'label': [list(span) for span in SPANS]},  # Doccano's
    {'id': 1, 'text': TEXT, 'entities': OFFSETS, 'relations': []},
    {'text': TEXT, 'tokens': [{'text': 'Jo', 'start': 0}], 'spans': STARTS, 'answer': 'accept'},
    {'text': TEXT, 'ents': STARTS, 'tokens': [{'id': 0}]},  # spaCy's
    (TEXT, {'entities': SPANS}),
    {'id': 1, 'Satz': TEXT, 'Namen': SPANS},
]


@pytest.mark.parametrize('row', TOLD)
def test_texts_with_entities(tmp_path, row):
    options = {'text_column': 'satz', 'label_column': 2} if 'Satz' in row else {}
    ignored = [{**row, 'answer': 'ignore'}] if 'answer' in row else []
    labels, rows = read([row, *ignored, row], **options)
    assert labels == ['O', 'B-LOC', 'B-ORG', 'B-PER', 'I-LOC', 'I-ORG']
    words = 'Jo/PER ( AT/ORG & T ) in New/LOC York .'.split()
    assert rows[0][0] == [word.split('/')[0] for word in words] and rows[0] == rows[1]
    entities = ['B-PER', 'O', 'B-ORG', 'I-ORG', 'I-ORG', 'O', 'O', 'B-LOC', 'I-LOC', 'O']
    assert rows[0][1] == entities
    if isinstance(row, dict):
        (tmp_path / 'rows.jsonl').write_text(json.dumps(row))
        assert read(str(tmp_path / 'rows.jsonl'), **options) == (labels, rows[:1])


@pytest.mark.parametrize(
    'span', [(0, 3), (0, 99, 'X'), (3, 3, 'X'), (-5, 2, 'X'), (0, 2, 'X'), ('0', '2', 'X'), 7]
)
def test_bad_entities_are_refused(span):
    with pytest.raises(InputError) as caught:
        read([{'text': TEXT, 'spans': []}, {'text': TEXT, 'spans': [*SPANS, span]}])
    assert caught.value.where.line == 1


def test_the_columns_of_files_are_numbers(tmp_path):
    (tmp_path / 'in.txt').write_text('N Jo B-PER\nV is O\n')
    expected = ['O', 'B-PER'], [(['Jo', 'is'], ['B-PER', 'O'])]
    for column in ({'text_column': 1}, {'word_column': '-2', 'label_column': 2}):
        assert read(str(tmp_path / 'in.txt'), **column) == expected
    with refuses('label_column'):
        read(str(tmp_path / 'in.txt'), label_column='tags')


@pytest.mark.parametrize(('text', 'columns'), [(GERMEVAL, (1, 2)), (CONLLU, (1, 3))])
def test_comments_ranges_and_empty_nodes(tmp_path, text, columns):
    path, out = tmp_path / 'in.tsv', tmp_path / 'out.tsv'
    path.write_text(text)
    rows = read_conll(path, *columns)
    assert [(list(row.words), list(row.labels)) for row in rows] == list(zip(WORDS, TAGS))
    write_conll(str(out), path, TAGS, *columns)
    assert [row[:2] for row in read_conll(out, columns[0], -1)] == [row[:2] for row in rows]
    same = [line.startswith('#') or line == '' for line in text.splitlines()]
    lines = zip(out.read_text().splitlines(), text.splitlines(), same)
    assert all(new == old if same else new.rpartition('\t')[0] == old for new, old, same in lines)
    with refuses(says='in.tsv'):
        read_conll(path)


def test_scores_of_games_and_hashes_are_words(tmp_path):
    path = tmp_path / 'in.txt'
    path.write_text('# CD O\n1 CD O\n1-2 CD O\n\n1 CD O\n2 CD O\n2-4 CD O\n8.1 CD O\n')
    assert [row.words for row in read_conll(path)] == [('#', '1', '1-2'), ('1', '2', '2-4', '8.1')]


GROUPS = [
    ('B-P I-P E-P S-P S-P O B-L', [('P', 3), ('P', 1), ('P', 1), ('O', 1), ('L', 1)]),
    ('B-P L-P U-P U-L O', [('P', 2), ('P', 1), ('L', 1), ('O', 1)]),
    ('B I I B O I', [('_', 3), ('_', 1), ('O', 1), ('_', 1)]),
    ('B-P I-P I-L S-Q S-Q X', [('P', 2), ('L', 1), ('S-Q', 2), ('X', 1)]),  # no scheme
]


@pytest.mark.parametrize('labels, groups', GROUPS)
def test_groups(labels, groups):
    labels = labels.split()
    found = groups_of_entities([{'entity': label} for label in labels], labels)
    assert [(kind, len(group)) for kind, group in found] == groups


def test_ignored_labels_have_no_loss_and_no_score(tmp_path):
    tokenizer = BertTokenizer(load_vocab([*SPECIAL, *'abc']))
    rows = [Sentence(('a', 'b', 'c'), ('O', '-100', 'B-X'), 1)]
    samples = tagging.encode_sentences(rows, tokenizer, ['O', 'B-X'], 16)
    (batch,) = BucketedLoader(samples, 2, pad_val=0)
    assert batch.labels.asnumpy().tolist() == [[-1, 0, -1, 1, -1]] and batch.count == 2
    assert tagging.score_tags([['N', '-100'], ['-100']], [['N', 'V'], ['V']]) == {'accuracy': 1}
    folder = tiny_models.save_bert(tmp_path, BertModel)
    rows = [(['the', 'cat', 'sleeps'], ['N', -100, 'V']), (['a', 'dog'], ['V', 'N'])]
    tests = [(words, [-100] * len(words)) for words, _ in rows]
    trained = finetune(folder, 'token-classification', rows, rows, tests, epochs=1, max_length=16)
    assert trained.task.labels == ['N', 'V'] and set(trained.scores) == {'accuracy', 'loss'}
    assert trained.test_scores == {} and [len(row) for row in trained.predictions] == [3, 2]
