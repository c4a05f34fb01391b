"""Imports go one way: scripts, export, bert_embedding -> the families -> model_zoo."""

import ast
import pathlib

import pytest

import model_zoo
from model_zoo.families import FAMILIES

ROOT = pathlib.Path(model_zoo.__file__).parent.parent
TOP = ('scripts', 'export', 'bert_embedding')
HEAVY = {
    'jax', 'keras', 'onnx', 'onnxruntime', 'pytorch_pretrained_bert', 'tensorflow', 'torch',
    'transformers',
}  # fmt: skip


def rooms():
    return [name for name in ('model_zoo', *FAMILIES, *TOP) if (ROOT / name).is_dir()]


def sources(room):
    return sorted((ROOT / room).rglob('*.py'))


def imports(path):
    """Top-level names that the file imports anywhere, functions included.

    'import_module' stands for what is imported by a name that isn't written there.
    """
    names = set()
    for node in ast.walk(ast.parse(path.read_text('utf-8'), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split('.')[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split('.')[0])
        elif isinstance(node, ast.ImportFrom):
            depth = len(path.relative_to(ROOT).parts) - 1
            assert node.level <= depth, f'{path} imports from outside of its room'
        elif isinstance(node, ast.Call) and getattr(node.func, 'attr', None) == 'import_module':
            name = node.args[0]
            known = isinstance(name, ast.Constant)
            names.add(name.value.split('.')[0] if known else 'import_module')
    return names


def allowed(room):
    """The rooms that `room` may import."""
    if room == 'model_zoo':
        return {'model_zoo'}
    if room in FAMILIES:
        return {'model_zoo', room}
    return {'model_zoo', *FAMILIES, *(TOP if room == 'scripts' else [room])}


#: file -> what it may import besides, each inside of a function
EXCEPTIONS = {
    'model_zoo/families.py': {'import_module'},  # the registry's look-up of families by name
    'bert/embedding.py': {'bert_embedding'},  # `from bert.embedding import BertEmbedding`
    'model_zoo/checkpoint/torch_file.py': {'torch'},  # their own formats
    'model_zoo/checkpoint/tensorflow_file.py': {'tensorflow'},
    # the originals, which it compares with
    'scripts/compare_checkpoints.py': {
        'pytorch_pretrained_bert', 'tensorflow', 'torch', 'transformers'
    },
}  # fmt: skip


@pytest.mark.parametrize('room', rooms())
def test_arrows(room):
    ours = set(rooms()) if room in TOP else {*rooms(), 'import_module'}
    wrong = {}
    for path in sources(room):
        name = path.relative_to(ROOT).as_posix()
        wrong[name] = imports(path) & ours - allowed(room) - EXCEPTIONS.get(name, set())
    assert not {name: found for name, found in wrong.items() if found}


@pytest.mark.parametrize('name', EXCEPTIONS)
def test_exceptions_are_needed_and_lazy(name):
    tree = ast.parse((ROOT / name).read_text('utf-8'))
    assert EXCEPTIONS[name] <= imports(ROOT / name)
    for node in tree.body:  # at the top of the module
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, 'module', None) or node.names[0].name
            assert module.split('.')[0] not in {*FAMILIES, *TOP, *HEAVY}


@pytest.mark.parametrize('room', rooms())
def test_heavy_peers_are_never_imported(room):
    wrong = {}
    for path in sources(room):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith('scripts/benchmark/'):
            wrong[name] = imports(path) & HEAVY - EXCEPTIONS.get(name, set())
    assert not {name: found for name, found in wrong.items() if found}


def test_families_are_there():
    """Another distribution may own the name of a family that isn't built yet, such as gpt."""
    assert [name for name in FAMILIES if not (ROOT / name / 'zoo.py').is_file()] == []


def test_the_checks_see_something(tmp_path):
    assert {'model_zoo', *FAMILIES} <= set(rooms())
    assert 'model_zoo' in imports(ROOT / 'bert' / 'model.py')
    assert len(sources('model_zoo')) > 10


@pytest.mark.parametrize('path', sorted((ROOT / 'scripts').glob('*.py')), ids=lambda p: p.name)
def test_commands_load_our_packages_before_mxnet(path):
    """So that Ctrl-C while MXNet loads is met, and MXNet gets its threads."""
    imported = []
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
        if isinstance(node, ast.Import):
            imported += [alias.name.split('.')[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported.append(node.module.split('.')[0])
    ours = {'model_zoo', 'bert', 'gpt', 'gpt2', 'transfo_xl', 'bert_embedding', 'run_pretraining'}
    first = next(name for name in imported if name in ours | {'mxnet', 'gluonnlp'})
    assert first in ours
