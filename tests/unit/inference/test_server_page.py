"""The server's page in a real browser: Debian's chromium, driven by Playwright.

With ZOO_PAGE_IMAGES=FOLDER the test on real weights writes the pictures of README and docs there.
"""

import os
import pathlib
import re
import shutil
import time

import mxnet as mx
import numpy as np
import pytest
from json_files import change_json
from page_visits import KEY, Visit, shown, take_picture

import bert
import model_zoo
from model_zoo.analysis import attention_of
from model_zoo.inference.server import Settings, build_app, worker

pytest.importorskip('fastapi')
pytest.importorskip('uvicorn')

MARKUP = '<img src=x onerror=alert(1)>'
NAME = f'{MARKUP} "&\'%2f\x1b[31m\u202e#'
LABELS = ['contradiction', MARKUP, 'entailment']
TEXTS = ['the cat sleeps .', 'the dog sleeps in paris .', 'a good film', 'a bad film ?', 'paris']


@pytest.fixture(scope='module')
def pipelines(pipelines, saved, tmp_path_factory):
    """Those of all tests; labels with markup, and of people and places; a ranking."""
    nli = saved(bert.BertForSequenceClassification, LABELS)
    kinds = ['O', 'B-PER', 'B-LOC', 'I-LOC'], ['B-<b>x</b>', f'B-{MARKUP}', 'I-\n']
    tagger, other = (saved(bert.BertForTokenClassification, each) for each in kinds)
    ranker = saved(bert.BertForSequenceClassification, ['score'])
    stars = shutil.copytree(ranker, tmp_path_factory.mktemp('stars') / 'model')
    change_json(stars / 'config.json', problem_type='regression')
    return {
        **pipelines,
        'nli': model_zoo.pipeline(nli),
        'tagger': model_zoo.pipeline(tagger),
        NAME: model_zoo.pipeline(other),
        'ranker': model_zoo.pipeline('rerank', ranker),
        'stars': model_zoo.pipeline(stars),
    }


@pytest.fixture(scope='module')
def app(pipelines):
    return build_app(pipelines, Settings(api_key=KEY, max_body=3000))


@pytest.fixture(scope='module')
def url(served_at):
    return f'http://{served_at}/'


@pytest.fixture(scope='module')
def visit(browser, url):
    visit = Visit(browser, url).enter()
    yield visit
    visit.context.close()


@pytest.fixture(autouse=True)
def no_complaints(request):
    yield
    if 'visit' in request.fixturenames:
        visit = request.getfixturevalue('visit')
        assert not visit.complaints
        assert visit.requests and all(each.startswith(visit.url) for each in visit.requests)


# -- one test for each view ------------------------------------------------------------------------


def test_labels(visit, pipelines):
    visit.show('nli', 'text-classification')
    for pair in ('', 'a dog'):
        visit.ask(text='the cat sleeps', pair=pair)
        item = {'text': 'the cat sleeps', **({'text_pair': pair} if pair else {})}
        wanted = pipelines['nli'](item, top_k=None)
        assert visit.bars() == shown((each['label'], each['score']) for each in wanted)
    assert MARKUP in dict(visit.bars())  # a text, not an element
    (command,) = visit.texts('.command pre')
    assert command.startswith('curl -H "Authorization: Bearer $KEY" ') and "'{" in command
    width = visit.find('.bar').first.evaluate('bar => parseFloat(bar.style.width)')
    assert width == pytest.approx(100 * wanted[0]['score'], abs=0.1)


def test_a_number(visit, pipelines):
    visit.show('stars', 'text-classification')
    visit.ask(text='a good film')
    (wanted,) = pipelines['stars'](['a good film'], top_k=None)
    assert visit.texts('.numbers dd') == [f'{each["score"]:.3f}' for each in wanted]
    assert not visit.find('.bar').count()


def test_own_labels(visit, saved):
    folder = saved(bert.BertForSequenceClassification, LABELS)
    pipeline = model_zoo.pipeline('zero-shot-classification', folder)
    visit.show('nli', 'zero-shot-classification')
    visit.ask(text='the cat sleeps', labels='cat, film , paris')
    wanted = pipeline('the cat sleeps', candidate_labels=['cat', 'film', 'paris'])
    assert visit.bars() == shown(zip(wanted['labels'], wanted['scores']))
    visit.find('#field-several').press('Space')
    visit.ask()
    wanted = pipeline('the cat sleeps', candidate_labels=['cat', 'film', 'paris'], multi_label=True)
    assert visit.bars() == shown(zip(wanted['labels'], wanted['scores']))


def test_answers(visit, pipelines):
    # an emoji is two of JavaScript's characters and one of Python's
    question, context = 'where ?', '🐱 the cat sleeps in paris . the dog sleeps .'
    visit.show('squad', 'question-answering')
    visit.ask(question=question, context=context)
    wanted = pipelines['squad'](question=question, context=context, top_k=5)
    assert visit.texts('.result mark') == [wanted[0]['answer']]
    assert visit.find('.result .marked').inner_text() == context
    choices = visit.find('.choice')
    assert choices.count() == 5
    choices.nth(1).press('Enter')
    assert visit.texts('.result mark') == [wanted[1]['answer']]
    assert choices.nth(1).get_attribute('aria-pressed') == 'true'


def test_entities(visit, pipelines):
    text = 'the cat sleeps in paris . a bad dog , a good film'
    wanted = pipelines['tagger'](text, aggregation_strategy='first')
    visit.show('tagger', 'token-classification')
    visit.ask(text=text)
    marks = visit.find('.result mark')
    assert wanted and marks.count() == len(wanted)
    found = marks.evaluate_all('all => all.map(each => [each.firstChild.data, each.className])')
    tags = visit.texts('.result mark .tag')
    assert [each[0] for each in found] == [text[each['start'] : each['end']] for each in wanted]
    assert tags == [each['entity_group'] for each in wanted]
    assert len({each[1] for each in found}) == len(set(tags))  # a colour for each kind
    assert visit.texts('.entities .label') == [each['word'] for each in wanted]
    counted = {f'{name} ({tags.count(name)})' for name in tags}
    assert {each.strip() for each in visit.texts('.legend li')} == counted


def test_names_and_labels_with_markup(visit, pipelines):
    visit.find('#models a', has_text=MARKUP).click()
    visit.find('h1', has_text=MARKUP).wait_for()
    assert visit.find('h1').text_content() == NAME
    assert visit.page.title() == f'Entities: {NAME}'.replace('\x1b', ' ')  # the browser's
    visit.ask(text=MARKUP)
    wanted = pipelines[NAME](MARKUP, aggregation_strategy='first')
    assert visit.texts('.result mark .tag') == [each['entity_group'] for each in wanted]
    marks = visit.find('.result mark').evaluate_all('all => all.map(each => each.firstChild.data)')
    assert marks == [MARKUP[each['start'] : each['end']] for each in wanted]
    assert visit.find('img').count() == 1  # the page's own


def test_masked_words(visit, pipelines):
    visit.show('masks', 'fill-mask')
    field = visit.find('#field-text')
    field.fill('the cat sleeps in ')
    field.press('End')
    visit.find('button', has_text='Insert [MASK]').press('Enter')
    assert field.input_value() == 'the cat sleeps in [MASK]'
    for text in (field.input_value(), 'the [MASK] sleeps in [MASK]'):
        visit.ask(text=text)
        wanted = pipelines['masks'](text, top_k=8)
        for place, words in enumerate([wanted] if isinstance(wanted[0], dict) else wanted):
            assert visit.bars(place) == shown((w['token_str'], w['score']) for w in words)


def slowly(stream):
    """`stream` with time between its tokens to press a button."""

    def wait(*args, **options):
        for new in stream(*args, **options):
            time.sleep(0.05)
            yield new

    return wait


def test_text_that_streams_and_stops(visit, pipelines, monkeypatch):
    visit.show('writer', 'text-generation')
    visit.ask(prompt='The model', tokens=12, temperature=0)
    wanted = pipelines['writer']('The model', max_new_tokens=12)[0]['generated_text']
    assert visit.find('.result .marked').text_content() == wanted
    assert visit.find('button', has_text='Stop').is_disabled()
    monkeypatch.setattr(worker, 'steps', slowly(worker.steps))
    visit.find('#field-tokens').fill('1000')
    visit.find('#field-tokens').press('Enter')
    visit.find('.written', has_text=re.compile('.{5}', re.DOTALL)).wait_for()
    visit.find('button', has_text='Stop').press('Enter')
    visit.find('.result:not([aria-busy])').wait_for()
    text = visit.find('.written').text_content()
    visit.page.wait_for_timeout(200)
    assert visit.find('.written').text_content() == text
    options = {'max_new_tokens': 1000, 'return_full_text': False}
    everything = pipelines['writer']('The model', **options)[0]['generated_text']
    assert everything.startswith(text) and len(text) < len(everything)


def cosines(pipeline, texts):
    vectors = np.array(pipeline(texts, return_tensors=True, pooling='mean', normalize=True))
    return vectors @ vectors.T


def test_similarity_as_a_heat_map(visit, pipelines):
    visit.show('owner/vectors', 'sentence-similarity')
    visit.ask(texts='\n'.join(TEXTS) + '\n \n')
    cells = np.array(visit.texts('.heat tbody td'), float).reshape(len(TEXTS), -1)
    np.testing.assert_allclose(cells, cosines(pipelines['owner/vectors'], TEXTS), atol=0.006)
    heat = visit.find('.heat tbody td').first
    assert heat.evaluate("cell => cell.style.getPropertyValue('--heat')") == '100%'


def test_neighbours_on_a_map(visit, pipelines):
    visit.show('owner/vectors', 'neighbours')
    visit.ask(query='the dog', texts='\n'.join(TEXTS))
    wanted = cosines(pipelines['owner/vectors'], [*TEXTS, 'the dog'])[-1][:-1]
    order = np.argsort(-wanted)
    assert visit.bars() == shown((f'{n + 1}. {TEXTS[n]}', wanted[n]) for n in order)
    assert sorted(visit.texts('.spot .number')) == ['1', '2', '3', '4', '5', '?']
    assert visit.find('.map line').count() == 3
    nearest = visit.texts('.spot.neighbour .number')
    assert sorted(nearest) == sorted(str(n + 1) for n in order[:3])


def test_choices(visit, pipelines):
    texts = ['a dog', 'a good film', 'paris']
    visit.show('choice', 'multiple-choice')
    visit.ask(text='the cat sleeps', choices='\n'.join(texts))
    scores = pipelines['choice']({'text': 'the cat sleeps', 'choices': texts})['scores']
    assert visit.bars() == shown(sorted(zip(texts, scores), key=lambda row: -row[1]))


def test_next_sentence(visit, pipelines):
    visit.show('next', 'next-sentence')
    visit.ask(text='the cat', pair='a dog')
    assert visit.bars()[:1] == shown([pipelines['next'](('the cat', 'a dog')).values()])


def test_ranking(visit, pipelines):
    visit.show('ranker', 'rerank')
    visit.ask(query='the dog', texts='\n'.join(TEXTS))
    found = pipelines['ranker']({'query': 'the dog', 'documents': TEXTS})
    assert visit.bars() == shown((TEXTS[each['corpus_id']], each['score']) for each in found)


def test_attention_by_keyboard(visit, pipelines):
    """Layer 2, head 2, and the third token, chosen with the keys."""
    text, block = 'the cat sleeps', pipelines['nli'].block
    encoding = pipelines['nli'].tokenizer.encode(text)
    inputs = [mx.nd.array([ids]) for ids in (encoding.input_ids, encoding.token_types)]
    weights = attention_of(block, *inputs)[1][0, 1].astype(np.float64).round(3)
    visit.show('nli', 'attention')
    visit.ask(text=text)
    assert visit.texts('.token text') == encoding.tokens == visit.texts('.seen text')
    for name in ('layer', 'head'):
        visit.find(f'#attention-{name}').press('ArrowRight')
    assert visit.texts('.slider output') == ['2', '2']
    assert visit.find('.look').count() == (weights >= 0.03).sum()
    visit.keyboard.press('Tab')
    visit.keyboard.press('ArrowDown')
    visit.keyboard.press('ArrowDown')
    order = np.argsort(-weights[2], kind='stable')[:3]
    wanted = ', '.join(f'{encoding.tokens[n]} {weights[2][n]:.3f}' for n in order)
    assert visit.find('.told').inner_text() == f'{encoding.tokens[2]} looks at {wanted}'
    opacities = "all => all.map(each => +each.getAttribute('stroke-opacity'))"
    wanted = [float(each) for each in weights[2] if each >= 0.03]
    assert visit.find('.look').evaluate_all(opacities) == pytest.approx(wanted)
    visit.keyboard.press('Escape')
    assert visit.find('.look').count() == (weights >= 0.03).sum()


# -- the page as a whole ---------------------------------------------------------------------------


def test_keyboard_alone(browser, url, pipelines):
    """From the key to a result, with nothing but keys; what has the focus can be seen."""
    visit = Visit(browser, url)
    visit.page.goto(url)
    visit.find('#key:focus').wait_for()
    visit.keyboard.type('wrong')
    visit.keyboard.press('Enter')
    visit.find('#key-error', has_text='refuses').wait_for()
    visit.keyboard.press('Control+A')
    visit.keyboard.type(KEY)
    visit.keyboard.press('Enter')
    visit.find('#models a').first.wait_for()

    def tab_to(selector):
        for _ in range(40):
            visit.keyboard.press('Tab')
            focused = visit.find(':focus')
            if focused.count():
                assert focused.evaluate('node => getComputedStyle(node).outlineStyle') == 'solid'
            if focused.and_(visit.find(selector)).count():
                return
        raise AssertionError(f'{selector} cannot be reached')

    tab_to('#models a:has-text("masks")')
    visit.keyboard.press('Enter')
    visit.find('h1', has_text='masks').wait_for()
    tab_to('#field-text')
    visit.keyboard.press('Control+A')
    visit.keyboard.type('the [MASK] sleeps')
    tab_to('button[type=submit]')
    visit.keyboard.press('Enter')
    visit.find('.result > *').first.wait_for()
    words = pipelines['masks']('the [MASK] sleeps', top_k=8)
    assert visit.bars() == shown((word['token_str'], word['score']) for word in words)
    assert visit.find('.result').get_attribute('aria-live') == 'polite'
    unlabelled = 'all => all.filter(each => !each.labels.length).length'
    assert visit.find('input, textarea').evaluate_all(unlabelled) == 0
    assert not visit.complaints
    visit.context.close()


def test_an_error_is_one_line(visit):
    visit.show('nli', 'text-classification')
    visit.find('#field-text').fill('cat ' * 1000)
    visit.find('#field-text').press('Control+Enter')
    alert = visit.find('form.view [role=alert]')
    alert.filter(has_text='larger').wait_for()
    assert alert.inner_text() == 'the request is larger than 3000 bytes'
    visit.ask(text='the cat')
    assert alert.inner_text() == ''


@pytest.fixture
def minilm_url(minilm_dir):
    from serving import serving

    models = {'all-MiniLM-L6-v2': model_zoo.pipeline(str(minilm_dir))}
    app = build_app(models, Settings(api_key=KEY))
    with serving(app) as (host, port):
        yield f'http://{host}:{port}/'


@pytest.mark.slow
@pytest.mark.weights
def test_real_weights(browser, minilm_url):
    """MiniLM finds what is alike; pictures are taken if they are wanted."""
    images = os.environ.get('ZOO_PAGE_IMAGES')
    for scheme in ('light', 'dark'):
        visit = Visit(browser, minilm_url, color_scheme=scheme, reduced_motion='reduce').enter()
        if scheme == 'light':
            visit.show('all-MiniLM-L6-v2', 'neighbours')
            visit.ask()
            assert [label[0] for label, _ in visit.bars()[:2]] == ['1', '2']  # the two cats
            name = 'page_neighbours.png'
        else:
            visit.show('all-MiniLM-L6-v2', 'attention')
            visit.ask()
            assert visit.find('#attention-layer').get_attribute('max') == '5'
            assert visit.find('#attention-head').get_attribute('max') == '11'
            visit.find('.token', has_text=re.compile('^it$')).hover()
            assert visit.find('.told').inner_text().startswith('it looks at ')
            visit.page.mouse.move(1, 1)
            assert visit.find('.told').inner_text().startswith('Point at')
            name = 'page_attention.png'
        if images:
            take_picture(visit, pathlib.Path(images) / name)
        assert not visit.complaints
        visit.context.close()
