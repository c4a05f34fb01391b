"""The report in a browser: it draws its charts, reads values, and runs no text as code."""

import pytest
from test_report import EVIL, RESULTS, changed, page_of

from model_zoo.app.report import write_card


@pytest.mark.parametrize(('width', 'scheme'), [(1200, 'light'), (420, 'dark')])
def test_report(browser, tmp_path, width, scheme):
    page_of(tmp_path)
    page = browser.new_page(viewport={'width': width, 'height': 900}, color_scheme=scheme)
    problems, requests = [], []
    page.on('pageerror', lambda error: problems.append(error))
    page.on('dialog', lambda dialog: problems.append(dialog))
    page.on('request', lambda request: requests.append(request.url))
    page.goto((tmp_path / 'report.html').as_uri())
    assert page.title() == EVIL.replace('\x1b', ' ')  # the browser's
    assert EVIL in page.inner_text('main')
    assert page.locator('svg polyline').count() == 3
    assert page.locator('table.matrix td').all_inner_texts() == ['2', '0', '1', '1']
    chart = page.locator('svg').first.bounding_box()
    page.mouse.move(chart['x'] + chart['width'] * 0.97, chart['y'] + chart['height'] / 2)
    said = page.locator('.readout').first.inner_text()
    assert 'training 0.5000 at 18' in said and 'dev set 0.5000 at 20 (epoch 2)' in said
    assert page.evaluate('document.documentElement.scrollWidth') <= width  # nothing is cut off
    assert not problems and len(requests) == 1
    page.close()


def test_card(browser, tmp_path):
    """Rendered, it shows names, labels and sets as they are; what is invisible is written out."""
    markdown = pytest.importorskip('markdown')
    about = {'title': EVIL, 'base': EVIL, 'labels': [EVIL, 'dev_set']}
    results = changed('description', **about, sizes={EVIL: 4, 'two\nlines': 1})
    results['best'] = {**RESULTS['best'], EVIL: {'f1': 1.0}}
    write_card(str(tmp_path), results)
    card = (tmp_path / 'README.md').read_text('utf-8')
    page, problems = browser.new_page(), []
    page.on('dialog', lambda dialog: problems.append(dialog))
    page.on('request', lambda request: problems.append(request.url))
    body = card.split('---', 2)[2]
    page.set_content(markdown.markdown(body, extensions=['tables', 'fenced_code']))
    shown = EVIL.replace('\x1b', '\\x1b').replace('\u202e', '\\u202e')
    assert page.locator('h1').inner_text() == shown
    assert page.locator('td').first.inner_text() == shown
    assert page.locator('td', has_text='two lines').count() == 1
    paragraphs = '\n'.join(page.locator('p').all_inner_texts())
    assert f'Trained from {shown} with' in paragraphs and f'Labels: {shown}, dev_set.' in paragraphs
    assert page.locator('img, a, em, p code, del, script').count() == 0 and not problems
    page.close()
