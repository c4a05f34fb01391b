"""The report, the card and the last words of a training."""

import copy
import logging
import re

import pytest
import yaml
from json_files import cases

from model_zoo.app.report import log_summary, write_report

RESULTS = cases('report')['RESULTS']
EVIL = RESULTS['description']['title']
[SCORES] = RESULTS['examination']['dev']['tables']['Scores per class']
SIMPLER = {'TF-IDF': {'accuracy': 0.8}, 'frozen': {'accuracy': 0.6}}
COMMAND = "zoo predict '/home/me/my run/best_model' 'A text.'"


def changed(part='examination', **changes):
    results = copy.deepcopy(RESULTS)
    of = results['examination']['dev'] if part == 'examination' else results[part]
    of.update(changes)
    return results


def page_of(folder, results=RESULTS):
    (folder / 'best_model').mkdir(exist_ok=True)
    write_report(str(folder), results, is_final=True)
    return (folder / 'report.html').read_text('utf-8')


def test_the_page_is_one_file_in_which_no_text_is_markup(tmp_path):
    page = page_of(tmp_path)
    assert '<img' not in page and page.count('</script>') == 1 and '49' not in page
    results = changed('args', task_name='x')
    results['description']['title'], results['examination'] = 'a title', {}
    page = page_of(tmp_path, results)
    assert not re.findall(r'(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)|@import|url\(', page)
    assert 'innerHTML' not in page


#: changes, and a part of the page; Wilson's range is
#: (3 + z * z / 2 -+ z * sqrt(3 * 1 / 4 + z * z / 4)) / (4 + z * z), z = 1.96
SHOWN = cases('report')['SHOWN']


@pytest.mark.parametrize('changes, shown', SHOWN)
def test_what_the_page_shows(tmp_path, changes, shown):
    assert shown in page_of(tmp_path, changed(**changes))


CAUTIONS = [
    ({'accuracy': 1.0}, 61, 'on others accuracy may be from 0.94 to 1.00'),
    ({'accuracy': 60 / 61}, 61, 'on others accuracy may be from 0.91 to 1.00'),
    ({'f1': 60.0, 'exact': 50.0}, 2, 'on others exact may be from 9 to 91'),
    ({'accuracy': 1.0}, 200, None),
    ({'accuracy': 0.97}, 1000, None),
    ({'spearman': 0.9}, 4, None),
]


@pytest.mark.parametrize('scores, count, said', CAUTIONS)
def test_few_rows_get_a_caution_also_if_all_are_right(tmp_path, scores, count, said):
    results = {**changed(examples=count), 'best': {'epoch': 2, 'dev': scores}}
    page = page_of(tmp_path, results)
    assert said in page if said else 'Caution' not in page


def test_simpler_models_stand_beside_the_model_and_one_that_is_better_is_said(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    page = page_of(tmp_path, {**RESULTS, 'baselines': {'dev': SIMPLER}})
    card = (tmp_path / 'best_model' / 'README.md').read_text('utf-8')
    assert '<b class="bad">0.75</b>' in page and 'No better by accuracy than: TF-IDF.' in page
    assert '"name": "frozen 0.60"' in page  # in the chart
    assert (
        '| accuracy | 0.75 | 0.50 | 0.80 | 0.60 |\n' in card and '| loss | 0.50 | | | |\n' in card
    )
    assert 'accuracy 0.75; always "a": 0.50; TF-IDF: 0.80; frozen: 0.60' in caplog.text
    assert 'no better by accuracy than: TF-IDF' in caplog.text
    assert 'Caution' not in page_of(tmp_path, changed(examples=400))


def test_the_page_of_a_training_that_continues(tmp_path):
    results = changed('description', metric=None)
    del results['examination']
    write_report(str(tmp_path), results)
    page = (tmp_path / 'report.html').read_text('utf-8')
    assert 'Confusion' not in page and 'Next' not in page and not (tmp_path / 'best_model').exists()
    assert not (tmp_path / 'curves.png').exists()  # until the end


def test_card(tmp_path):
    results = changed()
    results['description']['title'] = 'custom, <b>'
    page_of(tmp_path, results)
    card = (tmp_path / 'best_model' / 'README.md').read_text('utf-8')
    _, head, body = card.split('---\n', 2)
    head = yaml.safe_load(head)
    assert head['pipeline_tag'] == 'text-classification' and head['widget'] == [{'text': EVIL}]
    for part in cases('report')['CARD']:
        assert part in body, part
    assert (tmp_path / 'best_model' / 'curves.png').is_file()


def test_last_words(tmp_path, caplog, monkeypatch):
    (tmp_path / 'report.html').write_text('')
    monkeypatch.setattr('sys.executable', '/nowhere/python')
    with caplog.at_level(logging.INFO):
        log_summary(str(tmp_path), changed(never_predicted=['refund']))
    said = '\n'.join(record.getMessage() for record in caplog.records)
    assert 'accuracy 0.75; always "a": 0.50' in said and 'never predicted: refund\n' in said
    assert re.search(r'a +2 +0\n', said) and re.search('loss 2.00, .* predicted as "a": ', said)
    assert 'report.html' in said and 'test.tsv' not in said  # which doesn't exist
    assert said.endswith(f'next: {COMMAND}')


def test_the_path_of_zoo_is_named_where_the_shell_does_not_know_it(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr('sys.executable', str(tmp_path / '.venv' / 'bin' / 'python'))
    monkeypatch.setenv('PATH', str(tmp_path))
    caplog.set_level(logging.INFO)

    def said(command):
        log_summary(tmp_path, changed('description', command=command))
        return caplog.records[-1].getMessage().removeprefix('next: ')

    assert said('zoo predict x') == 'zoo predict x'  # nor is it beside Python
    folder = tmp_path / '.venv' / 'bin'
    folder.mkdir(parents=True)
    for name in ('zoo', 'python'):
        (folder / name).touch(0o755)
    assert said('zoo predict x') == f'{folder}/zoo predict x'
    assert said("echo x | zoo predict 'my zoo '") == f"echo x | {folder}/zoo predict 'my zoo '"
    monkeypatch.setenv('PATH', str(folder))
    assert said('zoo predict x') == 'zoo predict x'
