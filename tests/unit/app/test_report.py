"""The report, the card and the last words of a training."""

import json
import logging
import re

import pytest

from model_zoo.app.report import (
    About,
    Curves,
    dev_loss,
    log_summary,
    loss_points,
    next_command,
    write_card,
    write_report_page,
)

EVIL = (
    '</script><img src=x onerror=alert(1)> ${1} "quoted" \'single\' & é [a](javascript:alert(1)) '
    '*b* `c` ~~d~~ _e_ \\| ![f](x) \\\x1b[31m\u202e'
)
RESULTS = {
    'args': {'lr': 1e-3, 'epochs': 2, 'task_name': EVIL, 'labels': ['a', 'b'], 'seed': None},
    'versions': {'python': '3.11'},
    'best': {
        'epoch': 2,
        'parameters': 'model_1.params',
        'dev': {'accuracy': 0.75, 'loss': 0.5, 'samples_per_second': 9.0},
    },
    'training': {
        'steps': 20,
        'seconds': 75.4,
        'log': [{'step': 8, 'loss': 1.0}, {'step': 10, 'loss': 3.0}, {'step': 18, 'loss': 0.5}],
        'epochs': [
            {'epoch': 1, 'step': 10, 'score': 0.5, 'report': {'dev': {'loss': 0.9}}},
            {'epoch': 2, 'step': 20, 'score': 0.75, 'report': {'dev': {'loss': 0.5}}},
        ],
    },
    'examination': {
        'dev': {
            'examples': 4,
            'guess': 'a',
            'baseline': {'accuracy': 0.5},
            'classes': ['a', 'b|`c`'],
            'confusion': [[2, 0], [1, 1]],
            'mistakes': [{'text': EVIL, 'label': 'b|`c`', 'prediction': 'a', 'loss': 2.0}],
        }
    },
    'predictions': ['test.tsv'],
}


def page_of(path, title=EVIL, **changes):
    write_report_page(str(path), title, {**RESULTS, **changes}, 'accuracy', 'zoo predict x')
    return path.read_text('utf-8')


def data_of(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_the_page_is_one_file_in_which_no_text_is_markup(tmp_path):
    page = page_of(tmp_path / 'report.html')
    assert '<img' not in page and page.count('</script>') == 2
    page = page_of(tmp_path / 'other.html', 'a title', args={}, examination={})
    assert not re.findall(r'(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)|@import|url\(', page)
    assert 'innerHTML' not in page


def test_what_the_page_shows(tmp_path):
    data = data_of(page_of(tmp_path / 'report.html'))
    assert data['title'] == EVIL and data['mistakes'][0]['text'] == EVIL
    assert data['train'] == [[10, 1.4], [18, 0.5]]  # weighted by updates
    assert data['dev'] == [[10, 0.9, 1], [20, 0.5, 2]]
    assert data['score'] == [[10, 0.5, 1], [20, 0.75, 2]]
    assert (data['metric'], data['baseline'], data['guess']) == ('accuracy', 0.5, 'always "a"')
    assert data['sets'][0]['rows'] == [['accuracy', 0.75, 0.5], ['loss', 0.5, None]]
    assert data['next'] == 'zoo predict x'
    assert [0.75, 'best accuracy', 'good'] in data['tiles']


def test_the_page_of_a_training_that_goes_on(tmp_path):
    write_report_page(str(tmp_path / 'x'), 'x', {**RESULTS, 'examination': None})
    data = data_of((tmp_path / 'x').read_text())
    assert data['confusion'] is None and data['mistakes'] == [] and data['score'] == []


def test_loss_of_a_dev_set():
    assert dev_loss({'report': {'dev': {'mlm_loss': 2.0, 'nsp_loss': 0.5}}}) == 2.5
    assert dev_loss({'report': {'dev': {'f1': 1.0}}}) is None
    assert dev_loss({'report': {}}) is None


def test_card(tmp_path):
    (tmp_path / 'curves').write_bytes(b'picture')
    about = About('text-classification', 'bert_6', {'train': 1200, 'dev': 4}, labels=['a', 'b|`c`'])
    folder = tmp_path / 'best_model'
    folder.mkdir()
    write_card(str(folder), 'custom, <b>', about, RESULTS, 'accuracy', str(tmp_path / 'curves'))
    card = (folder / 'README.md').read_text('utf-8')
    assert card.startswith('---\nlibrary_name: ') and 'pipeline_tag: text-classification' in card
    for part in (
        '| train | 1,200 |',
        '| accuracy | 0.75 | 0.5 |',
        '&lt;b&gt;',
        'curves.png',
        'Labels: a, ',
        "model_zoo.pipeline('text-classification', ",
        '| `--lr` | 0.001 |',
        'epoch 2 of 2, the best by accuracy',
    ):
        assert part in card, part
    assert 'b\\|\\`c\\`' in card and (folder / 'curves.png').read_bytes() == b'picture'


@pytest.mark.parametrize(
    ('use', 'command'),
    [
        ('text-classification', "zoo predict 'my model' 'A text.'"),
        ('token-classification', "zoo tag 'my model' 'A text.'"),
        (
            'multiple-choice',
            'python -c \'import model_zoo; print(model_zoo.pipeline("multiple-choice", "my model")'
            '({"text": "It rains.", "choices": ["I get wet.", "I am a tree."]}))\'',
        ),
        (None, None),
    ],
)
def test_next_commands(use, command):
    assert next_command(About(use, '', {}), 'my model') == command


def test_last_words(tmp_path, caplog):
    (tmp_path / 'report.html').write_text('')
    with caplog.at_level(logging.INFO):
        log_summary(RESULTS, str(tmp_path), 'zoo predict x', str(tmp_path))
    said = '\n'.join(record.getMessage() for record in caplog.records)
    assert 'accuracy 0.7500; always "a": 0.5000' in said
    assert re.search(r'a +2 +0\n', said) and re.search('loss 2.00, .* predicted as "a": ', said)
    assert 'report.html' in said and 'test.tsv' not in said  # which isn't there
    assert re.search('next: .*zoo predict x$', said)


def test_the_path_of_zoo_is_told_where_the_shell_does_not_know_it(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr('sys.executable', str(tmp_path / '.venv' / 'bin' / 'python'))
    monkeypatch.setenv('PATH', str(tmp_path))
    caplog.set_level(logging.INFO)

    def said(command):
        log_summary({}, tmp_path, command, tmp_path)
        return caplog.records[-1].getMessage().removeprefix('next: ')

    assert said('zoo predict x') == 'zoo predict x'  # nor is it beside Python
    folder = tmp_path / '.venv' / 'bin'
    folder.mkdir(parents=True)
    for name in ('zoo', 'python'):
        (folder / name).touch(0o755)
    assert said('zoo predict x') == f'{folder}/zoo predict x'
    assert said("echo x | zoo predict 'my zoo '") == f"echo x | {folder}/zoo predict 'my zoo '"
    assert said("python -c 'python '") == f"{folder}/python -c 'python '"
    monkeypatch.setenv('PATH', str(folder))
    assert said('zoo predict x') == 'zoo predict x'


def test_curves_are_drawn_at_times_and_at_the_end(monkeypatch):
    now, drawn = [100.0], []
    monkeypatch.setattr('time.monotonic', lambda: now[0])
    curves = Curves(drawn.append)
    for seconds, state in ((1, 'a'), (29, 'b'), (29, 'c'), (1, 'd')):
        now[0] += seconds
        curves.update(state)
    assert drawn == ['b', 'd']
    curves.finish('e')
    assert drawn == ['b', 'd', 'e']


def test_short_intervals_of_a_curve_are_weighted_by_their_updates():
    def points(*pairs):
        return loss_points([{'step': step, 'loss': loss} for step, loss in pairs])

    assert points((10, 4.0), (20, 3.0), (25, 6.0), (35, 2.0)) == [(10, 4.0), (25, 4.0), (35, 2.0)]
    assert points((10, 1.0), (12, 2.5), (15, 4.0)) == [(15, pytest.approx(1.8))]
    assert points((4, 1.0), (8, 2.0), (12, 3.0)) == [(4, 1.0), (8, 2.0), (12, 3.0)]
    assert points((2, 1.0), (7, 2.0)) == [(2, 1.0), (7, 2.0)]
    several = points((6, 6.0), (10, 3.0), (12, 6.0), (18, 2.0), (20, 2.0), (24, 1.0))
    assert several == [(6, 6.0), (12, 4.0), (18, 2.0), (24, pytest.approx(4 / 3))]
    assert points() == []
