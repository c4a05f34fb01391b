"""What an import brings along: no library that only some tasks need, and all that is joined."""

import pytest
from command_flags import command_names
from json_files import cases
from script_runs import MXNET, ROOT, run_python

from model_zoo.families import FAMILIES

#: slow to import, and needed for some tasks only
SLOW = (
    'huggingface_hub matplotlib onnx onnxruntime pandas scipy sentencepiece seqeval sklearn '
    'tensorboard tensorflow torch transformers'
).split()
PACKAGES = ('model_zoo', *FAMILIES, 'export', 'bert_embedding')
#: begins a program. MXNet loads some of them by itself, so that sys.modules doesn't tell enough:
#: what our modules import is looked at, too.
WATCH = f"""
import builtins, sys

SLOW, BEFORE, FOUND, IMPORT = {SLOW}, set(sys.modules), set(), builtins.__import__
OURS = {tuple(f'{ROOT / package}/' for package in (*PACKAGES, 'scripts'))}

def watch(name, globals=None, *args, **kwargs):
    file = globals and globals.get('__file__')
    if file and file.startswith(OURS) and name.split('.')[0] in SLOW:
        FOUND.add(f"{{globals['__name__']}} imports {{name}}")
    return IMPORT(name, globals, *args, **kwargs)

builtins.__import__ = watch
"""
TELL = """
FOUND |= {f'{name} is loaded' for name in SLOW if name in set(sys.modules) - BEFORE}
assert not FOUND, FOUND
"""


def run(program, before=MXNET):
    done = run_python('-c', before + program, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('package', PACKAGES)
def test_any_package_comes_first(package):
    run(f'import {package}', before='')


def test_nothing_slow_is_loaded():
    """Packages and parsers load none, and ``model_zoo`` only what opens models."""
    names = command_names(ROOT)
    assert len(names) > 20
    run(f"""{WATCH}
import model_zoo
rooms = {{name.split('.')[1] for name in sys.modules if name.startswith('model_zoo.')}}
assert rooms == {{
    'checkpoint', 'environment', 'errors', 'families', 'mxnet_import', 'mxnet_private', 'opening',
    'operators', 'optimizer', 'pretrained',
    'registry', 'tokenization', 'util', 'zoo',
}}, rooms
assert not {set(PACKAGES) - {'model_zoo'}} & set(sys.modules)
import {', '.join(PACKAGES)}
{TELL}
import pathlib
sys.path.insert(0, 'tests')
from command_flags import main_of, parser_of
for name in {names}:
    parser_of(main_of(name, pathlib.Path({str(ROOT)!r}))).format_help()
{TELL}""")


def test_a_graph_without_types_is_loaded_without_a_warning():
    """As an export is; other calls warn as before, and so does this one if the user asks."""
    run(
        """
import warnings
import model_zoo, mxnet
def count(load):
    with warnings.catch_warnings(record=True) as found:
        load()
    return len(found)
word = mxnet.sym.var('word')
load = lambda: mxnet.gluon.SymbolBlock(word * 2, [word])
assert count(load) == 0 and count(word.infer_type) == 1
warnings.simplefilter('always')
assert count(load) == 1
""",
        before='',
    )


COMMANDS = cases('environment')['COMMANDS']


def test_the_command_line_answers_before_anything_slow_is_loaded():
    program = f"""
import contextlib, sys
from scripts import zoo
for words in {COMMANDS}:
    sys.argv[1:] = words.split()
    with contextlib.suppress(SystemExit):
        zoo.console()
    found = {{'gluonnlp', 'mxnet', 'numpy', *{SLOW}}} & set(sys.modules)
    assert not found, (words, found)
"""
    run(program, before='')


def test_mxnet_comes_without_what_it_rarely_uses_and_gluonnlp_is_joined():
    program = """
import sys
from model_zoo.util import arrays
import mxnet as mx, mxnet.test_utils
loaded = {'sklearn', 'scipy.stats', 'onnx', 'pandas'} & set(sys.modules)
assert not loaded, loaded
assert mxnet.test_utils.ss.norm.cdf(0) == 0.5 and 'scipy.stats' in sys.modules
import gluonnlp as nlp
assert 'bertadam' in mx.optimizer.Optimizer.opt_registry
assert nlp.model.get_model.__module__ == 'model_zoo.zoo'
"""
    run(program, before='')


def test_gluonnlp_is_joined_when_it_is_imported_first():
    run("""import gluonnlp, bert
import gluonnlp as nlp, model_zoo
assert nlp.model.get_model is gluonnlp.model.get_model is model_zoo.get_model
assert nlp.optimizer.BERTAdam is not model_zoo.optimizer.BERTAdam
assert 'gpt2_117m' in model_zoo.list_models()
block, vocab = nlp.model.get_model(
    'bert_12_768_12', vocab=nlp.vocab.BERTVocab(nlp.data.count_tokens(['a'])), pretrained=False,
    num_layers=1, units=8, hidden_size=8, num_heads=2, hparam_allow_override=True,
)
assert type(block).__module__.split('.')[0] == 'bert'
""")
