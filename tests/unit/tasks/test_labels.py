"""A classifier's labels are its checkpoint's: by name, else in the order of who trained it."""

import json
import logging

import pytest
from json_files import cases
from refusals import refuses

from model_zoo.opening import locate
from model_zoo.tasks import labels
from model_zoo.tasks.classification_data import custom_task, get_task
from model_zoo.util.choices import GLUONNLP, ORIGINALS

TWO = {'id2label': {'0': '0', '1': '1'}}
NLI_OF_GLUONNLP = ('neutral', 'entailment', 'contradiction')
NLI_OF_ORIGINALS = ('contradiction', 'entailment', 'neutral')


def named(*labels, **fields):
    return {'id2label': {str(n): name for n, name in enumerate(labels)}, **fields}


def match_labels(task, model, *args, dataset=None, **options):
    """The task with the labels of a model that is named."""
    located = locate(model, dataset_name=dataset, weights=None, vocab=False)
    return labels.match_labels(task, located, *args, **options)


NUMBERED = named('LABEL_0', 'LABEL_1', 'LABEL_2')


@pytest.fixture
def folder(tmp_path):
    """Makes a folder of a configuration and empty files."""

    def make(config, *files):
        (tmp_path / 'config.json').write_text(json.dumps({'model_type': 'bert', **config}))
        for name in files:
            (tmp_path / name).write_text('')
        return str(tmp_path)

    return make


MATCHING = cases('labels')['MATCHING']


@pytest.mark.parametrize('config, task', MATCHING)
def test_taken_without_a_word(folder, config, task, caplog):
    with caplog.at_level(logging.WARNING):
        assert match_labels(get_task(task), folder(config)) == get_task(task)
    assert not caplog.records


REFUSED = cases('labels')['REFUSED']


@pytest.mark.parametrize('config, task', REFUSED)
def test_refused(folder, config, task):
    with refuses(says=task):
        match_labels(get_task(task), folder(config))


def test_the_names_decide_not_the_positions(folder):
    nli = 'entailment', 'neutral', 'contradiction'
    for names, task, ordered in [
        (NLI_OF_ORIGINALS, 'MNLI', NLI_OF_ORIGINALS),
        (('ENTAILMENT', 'neutral', 'contradictory'), 'XNLI', nli),
        (('Entailment', 'not-entailment'), 'QNLI', ('entailment', 'not_entailment')),
        (('equivalent', 'NOT_EQUIVALENT'), 'MRPC', ('1', '0')),
        (('not_duplicate', 'duplicate'), 'QQP', ('0', '1')),
        (('POSITIVE', 'NEGATIVE'), 'SST', ('1', '0')),
        (('acceptable', 'unacceptable'), 'CoLA', ('1', '0')),
    ]:
        task = match_labels(get_task(task), folder(named(*names), 'model.params'))
        assert task.labels == ordered
        assert [task.target.parse(name) for name in names] == list(ordered)
        assert task.target.array(ordered).tolist() == [*range(len(ordered))]


def test_digits_in_the_data_are_positions_among_names(folder):
    task = match_labels(get_task('MNLI'), folder(named(*NLI_OF_ORIGINALS)))
    assert [task.target.parse(digit) for digit in '012'] == list(NLI_OF_ORIGINALS)
    with refuses(says=("'3'", 'contradiction')):
        task.target.parse('3')
    task = match_labels(get_task('MRPC'), folder(named('equivalent', 'not_equivalent')))
    assert task.target.number(task.target.parse('1')) == 0  # which has a meaning there


@pytest.mark.parametrize(
    'file', ['model.params', 'pytorch_model.bin', 'model.ckpt.index', 'model.safetensors']
)
def test_without_names_the_format_says_whose_order_it_is(folder, file, caplog):
    order = GLUONNLP if file == 'model.params' else ORIGINALS
    place = folder({'hidden_size': 8}, file)
    with caplog.at_level(logging.INFO):
        task = match_labels(get_task('MNLI'), place)
    assert task.labels == {GLUONNLP: NLI_OF_GLUONNLP, ORIGINALS: NLI_OF_ORIGINALS}[order]
    (record,) = caplog.records
    author = 'GluonNLP' if order == GLUONNLP else 'pytorch-pretrained-BERT and Google'
    assert record.levelname == 'INFO' and file in record.getMessage()
    assert f'{", ".join(task.labels)}, the order of {author}' in record.getMessage()
    # and beside a file of weights, or with one for another model
    assert match_labels(get_task('MNLI'), f'{place}/{file}').labels == task.labels
    given = match_labels(get_task('MNLI'), 'bert_12_768_12', parameters=f'{place}/{file}')
    assert given.labels == task.labels
    # what this project has saved is GluonNLP's
    saved = match_labels(get_task('RTE'), folder({}, file, 'SHA256SUMS'))
    assert saved.labels == get_task('RTE').labels
    assert match_labels(get_task('MRPC'), place).labels == ('0', '1')


def test_numbered_names_are_taken_by_order_with_a_warning(folder, caplog):
    for config in (NUMBERED, {'transformers_version': '4.46.3'}):
        task = match_labels(get_task('XNLI'), folder(config, 'model.safetensors'))
        assert task.labels == NLI_OF_ORIGINALS
        (record,) = caplog.records
        assert record.levelname == 'WARNING' and '`labels`' in record.getMessage()
        assert "the data set's own: entailment neutral contradiction" in record.getMessage()
        caplog.clear()
    # the user's own names are the last word
    order = ['entailment', 'Neutral', 'contradiction']
    task = match_labels(get_task('XNLI'), folder(NUMBERED, 'model.safetensors'), order)
    assert task.labels == ('entailment', 'neutral', 'contradiction') and not caplog.records
    task = match_labels(get_task('XNLI'), folder(named(*NLI_OF_GLUONNLP)), order)
    assert task.labels[0] == 'entailment'
    assert 'the model calls them neutral, ent' in caplog.records[0].getMessage()
    for wrong in (['yes', 'no', 'maybe'], ['neutral']):
        with refuses('labels'):
            match_labels(get_task('XNLI'), folder(NUMBERED), wrong)
    with refuses('labels'):
        match_labels(get_task('STS-B'), folder({}), ['a', 'b'])


def test_trainings_begin_with_an_order(folder):
    task = get_task('RTE')
    assert match_labels(task, 'bert_12_768_12', trains=True).labels == task.labels
    new = match_labels(task, 'bert_12_768_12', trains=True, order=ORIGINALS)
    assert new.labels == ('entailment', 'not_entailment')
    # a trained model keeps its own, whoever goes on with it
    place = folder(named('entailment', 'not_entailment'))
    assert match_labels(task, place, trains=True).labels == ('entailment', 'not_entailment')
    place = folder(named('no', 'yes'))  # of another task
    assert match_labels(task, place, trains=True).labels == task.labels
    assert match_labels(get_task('STS-B'), place, trains=True) == get_task('STS-B')


def test_a_custom_task_has_the_models_labels(folder, tmp_path):
    task = custom_task(['t'], 'y', files={'dev': 'dev.tsv'})
    adopted = match_labels(task, folder(named('Neg', 'Pos')))
    assert adopted.labels == ('Neg', 'Pos') and adopted.target.metrics[:2] == ('accuracy', 'f1')
    assert adopted.target.parse('pos') == 'Pos' and adopted.target.parse('0') == 'Neg'
    assert match_labels(task, folder(NUMBERED)).labels == ('LABEL_0', 'LABEL_1', 'LABEL_2')
    assert match_labels(task, folder({})).labels is None
    rows = tmp_path / 'rows.tsv'
    rows.write_text('t\ty\na\tpos\nb\tneg\n')
    task = custom_task(['t'], 'y', files={'train': str(rows)})
    assert match_labels(task, folder({}), trains=True).labels == ('neg', 'pos')
    assert match_labels(task, folder(named('POS', 'NEG')), trains=True).labels == ('pos', 'neg')
    assert match_labels(task, folder(named('a', 'b')), trains=True).labels == ('neg', 'pos')


def test_words_of_a_custom_file_for_a_model_without_words(folder, tmp_path, caplog):
    rows = tmp_path / 'rows.tsv'
    rows.write_text('t\ty\na\tentailment\nb\tnot_entailment\n')
    task = custom_task(['t'], 'y', files={'train': str(rows)})
    # as version 0.2 wrote it: the task's name alone, in GluonNLP's order
    place = folder({'finetuning_task': 'RTE'}, 'model.params', 'SHA256SUMS')
    assert match_labels(task, place).labels == ('not_entailment', 'entailment')
    assert not caplog.records
    task_of_numbered = match_labels(task, folder(named('LABEL_0', 'LABEL_1')))
    assert task_of_numbered.labels == ('entailment', 'not_entailment')
    assert 'only numbers its labels' in caplog.text
    with refuses(says='not_entailment'):
        match_labels(task, folder(NUMBERED))
    rows.write_text('t\ty\na\t0\nb\t1\n')
    assert match_labels(task, folder(NUMBERED)).labels == ('LABEL_0', 'LABEL_1', 'LABEL_2')


def test_names_of_the_zoo_are_in_the_catalogue():
    name = 'bert-large-uncased-whole-word-masking-finetuned-mnli'
    assert match_labels(get_task('MNLI'), name).labels == NLI_OF_ORIGINALS
    located = locate('bert-base-cased-finetuned-mrpc', weights=None, vocab=False)
    assert located.labels.given == ['not_equivalent', 'equivalent']
    assert match_labels(get_task('MRPC'), 'bert-base-cased-finetuned-mrpc').labels == ('0', '1')
    assert match_labels(get_task('MRPC'), 'bert_6_384_12').labels == ('0', '1')
