"""A visitor of the server's page, for its tests."""

import io

from PIL import Image

__all__ = ['KEY', 'Visit', 'shown', 'take_picture']

#: the server's API key
KEY = 'secret'


class Visit:
    """A page that is open in the browser, and what it has asked for."""

    def __init__(self, browser, url, **options):
        self.url, self.requests, self.complaints = url, [], []
        options = {'viewport': {'width': 1060, 'height': 800}, **options}
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(120_000)
        self.context.on('request', lambda request: self.requests.append(request.url))
        self.page = self.context.new_page()
        self.page.on('pageerror', lambda error: self.complaints.append(str(error)))
        self.page.on('console', self._on_console)
        self.keyboard, self.find = self.page.keyboard, self.page.locator

    def _on_console(self, message):
        # the browser's line about a response that is an error is no complaint of the page
        if message.type in ('error', 'warning') and 'Failed to load' not in message.text:
            self.complaints.append(message.text)

    def enter(self, key=KEY):
        self.page.goto(self.url)
        self.find('#key:focus').wait_for()  # keys that come before are lost
        self.keyboard.type(key)
        self.keyboard.press('Enter')
        return self

    def show(self, model, view):
        """Open a view of a model; the key stays."""
        self.page.evaluate('to => { location.hash = to }', f'#/{model.replace("/", "%2F")}/{view}')
        self.find('h1', has_text=model).wait_for()
        self.find('.tabs a[aria-current]').wait_for()

    def ask(self, **fields):
        """Fill in fields by their ids, and submit by keyboard."""
        for name, value in fields.items():
            self.find(f'#field-{name}').fill(str(value))
        self.find('form.view').locator('textarea, input').first.press('Control+Enter')
        self.find('.result > *').first.wait_for()
        self.find('.result:not([aria-busy])').wait_for()

    def texts(self, selector):
        return self.find(selector).all_text_contents()

    def bars(self, place=0):
        """Labels and numbers of a list of bars."""
        bars = self.find('.result .bars').nth(place)
        labels = bars.locator('.label').all_inner_texts()
        return list(zip(labels, bars.locator('.value').all_inner_texts()))


def shown(rows):
    return [(label, f'{score:.3f}') for label, score in rows]


def take_picture(visit, path):
    """Save the page down to the end of the drawing, in few colours, so that the file is small."""
    end = visit.find('.result svg').evaluate('svg => svg.getBoundingClientRect().bottom + scrollY')
    clip = {'x': 0, 'y': 0, 'width': 1060, 'height': end + 20}
    taken = visit.page.screenshot(full_page=True, clip=clip)
    Image.open(io.BytesIO(taken)).convert('RGB').quantize(64).save(path, optimize=True)
    assert path.stat().st_size < 150_000
