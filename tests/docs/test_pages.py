"""Every code block of README.rst and docs/ runs and prints what the page says."""

import itertools
import pathlib
import re

import commands
import pages
import places
import pytest
from halves import needs_bfloat16
from real_data import DATA
from script_runs import ROOT

PAGES = [
    path
    for path in (ROOT / 'README.rst', *sorted((ROOT / 'docs').rglob('*.rst')))
    if '/_' not in str(path.relative_to(ROOT))  # docs/_build and the like
]
PEERS = r'^(?:import|from) (transformers|torch|pytorch_pretrained_bert|onnxruntime)\b'
SERVER = re.compile('build_app|inference.server')
_DATA = '|'.join(DATA)
# `glue/MRPC`, `text/one.txt,text/two.txt`; and `--data_dir glue`
DATA_FILE = re.compile(rf'(?<![\w./-])({_DATA})(?=/)')
#: one epoch of the demo's data shows what four do
DEMO_EPOCHS = re.compile(r"(train='scripts/demo_data/.*?epochs=)\d+", re.DOTALL)
#: pages whose code trains, or loads many models
WHOLE_JOBS = (
    'README.rst benchmarks.rst gluonnlp.rst how_do_i.rst index.rst model_zoo.rst quickstart.rst'
).split()
DATA_FOLDER = re.compile(rf'--\w+[ =]({_DATA})(?=\s|$)')


def code_of(text):
    return '\n'.join(b.text for b in pages.find_blocks(text) if b.kind in pages.RUN)


def cases():
    """Yield a case per page, with the marks of what its code needs."""
    for path in PAGES:
        code, marks = code_of(path.read_text('utf-8')), []
        if re.search(PEERS, code, re.MULTILINE):
            marks.append(pytest.mark.peers)
        if re.search('minilm', code, re.IGNORECASE):
            marks.append(pytest.mark.weights)
        if DATA_FILE.search(code) or DATA_FOLDER.search(code):
            marks.append(pytest.mark.data)
        if 'bfloat16' in code:
            marks.append(needs_bfloat16)
        if code and (path.parent.name == 'tasks' or path.name in WHOLE_JOBS):
            marks.append(pytest.mark.slow)
        yield pytest.param(path, marks=marks, id=str(path.relative_to(ROOT)))


def serve_peers(monkeypatch, hub_cache, models):
    """Make transformers and pytorch-pretrained-bert find tiny models under their names."""
    import huggingface_hub.constants
    import pytorch_pretrained_bert as peer

    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_CACHE', str(hub_cache))
    files = {
        'PRETRAINED_MODEL_ARCHIVE_MAP': 'pytorch_model.bin',
        'PRETRAINED_CONFIG_ARCHIVE_MAP': 'config.json',
        'PRETRAINED_VOCAB_ARCHIVE_MAP': 'vocab.json',
        'PRETRAINED_MERGES_ARCHIVE_MAP': 'merges.txt',
    }
    modules = (
        peer.modeling,
        peer.modeling_gpt2,
        peer.modeling_openai,
        peer.modeling_transfo_xl,
        peer.tokenization,
        peer.tokenization_gpt2,
        peer.tokenization_openai,
    )
    for module, (name, file) in itertools.product(modules, files.items()):
        urls = getattr(module, name, {})
        for model in set(urls) & set(places.PEERS_NAMES):
            folder = models.folder(places.PEERS_NAMES[model], 'pytorch')
            path = folder / ('vocab.txt' if module is peer.tokenization else file)
            monkeypatch.setitem(urls, model, str(folder if module is peer.modeling else path))


def test_no_code_escapes():
    faults = {str(path): pages.find_faults(path.read_text('utf-8')) for path in PAGES}
    assert not any(faults.values()), faults


@pytest.mark.parametrize('path', [*cases()])
def test_page(path, request, shared, tiny_models, registries, folder, monkeypatch):
    marks = {mark.name for mark in request.node.iter_markers()}
    short = None
    if SERVER.search(code_of(path.read_text('utf-8'))):
        pytest.importorskip('fastapi')
    if 'weights' in marks:
        request.getfixturevalue('minilm_dir')
    if 'data' in marks:
        data_dir = request.getfixturevalue('data_dir')
        short = request.getfixturevalue('short_data')
        for name in DATA:
            (folder / name).symlink_to(data_dir / name)
    if 'peers' in marks:
        pytest.importorskip('transformers')
        pytest.importorskip('pytorch_pretrained_bert')
        serve_peers(monkeypatch, request.getfixturevalue('hub_cache'), tiny_models)
    (folder / 'downloaded').symlink_to(shared / 'downloaded')
    (folder / 'scripts').symlink_to(ROOT / 'scripts')  # commands are run beside it
    monkeypatch.setenv('MXNET_HOME', str(shared / 'mxnet'))
    monkeypatch.chdir(folder)

    def short_word(word):
        """Return a word of a command, with a short copy of the file that it names."""
        file = pathlib.Path(word)  # perhaps made by the page
        if word in DATA or DATA_FILE.match(word):
            return str(short / word)
        if file.suffix == '.txt' and file.name != 'vocab.txt' and file.is_file():
            copy = file.with_name(f'short_{file.name}')
            places.shorten_text(file, copy)
            return str(copy)
        return word

    text = DEMO_EPOCHS.sub(r'\g<1>1', path.read_text('utf-8'))
    pages.run_page(str(path.relative_to(ROOT)), text, commands.Runner(short_word))
