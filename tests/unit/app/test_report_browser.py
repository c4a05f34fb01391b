"""The report in a browser: it draws its charts, reads values, and runs no text as code."""

import pytest
from test_report import EVIL, page_of


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
    page.locator('svg').first.scroll_into_view_if_needed()
    chart = page.locator('svg').first.bounding_box()
    page.mouse.move(chart['x'] + chart['width'] * 0.97, chart['y'] + chart['height'] / 2)
    said = page.locator('.readout').first.inner_text()
    assert 'training 0.50 at 18' in said and 'dev set 0.50 at 20 (epoch 2)' in said
    assert page.evaluate('document.documentElement.scrollWidth') <= width  # nothing is cut off
    assert not problems and len(requests) == 1
    page.close()
