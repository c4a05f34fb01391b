"""Imports go one way: between the packages, and between the rooms of model_zoo."""

import ast
import re

import pytest
from imports_of_modules import ROOT, children, circles, modules, parse

from model_zoo.families import FAMILIES

TOP = ('scripts', 'export', 'bert_embedding')
PACKAGES = ('model_zoo', *FAMILIES, *TOP)
GRAPH = modules(*PACKAGES)
#: of model_zoo, from the top: a room imports those of its own line and below
LEVELS = (
    {'app'},
    {'analysis', 'inference', 'tasks'},
    {'training', 'generation', 'onnx'},
    {'opening', 'zoo'},
    {'blocks'},
    {'registry'},  # which knows neither blocks nor families
    {'tokenization'},
    {'batches', 'checkpoint', 'pretrained', 'layers', 'optimizer', 'records'},
    {'operators'},
    {'util'},
    {'environment', 'errors', 'families', 'mxnet_import', 'mxnet_private'},
)
#: its own files, which none of the rooms imports
FACES = {'model_zoo'}
HEAVY = {*'jax keras onnx onnxruntime openvino tensorflow torch transformers'.split()}
HEAVY.add('pytorch_pretrained_bert')
#: module -> what it may import besides, each inside of a function
EXCEPTIONS = {
    'model_zoo': {'import_module'},  # its public names, from where they are
    'model_zoo.app.finetune': {'import_module'},  # a task by its name
    'model_zoo.app.originals': {'import_module'},  # a command's task, once its flags are read
    'model_zoo.mxnet_import': {'import_module'},  # what MXNet rarely uses
    'model_zoo.families': {'import_module'},  # of families and of what stands above, by name
    'model_zoo.checkpoint.tensorflow_file': {'tensorflow'},  # its own format
    'model_zoo.inference.onnx_engine': {'onnxruntime', 'openvino'},
    'model_zoo.onnx.graph': {'onnx', 'onnxruntime'},
    'model_zoo.onnx.precision': {'onnx', 'onnxruntime'},
}


def first(name):
    return name.split('.')[0]


def imports(module):
    return {each.name for each in GRAPH[module]}


def in_package(package):
    return [module for module in GRAPH if first(module) == package]


def room(module):
    """The room of model_zoo that a module is in, or None."""
    parts = module.split('.')
    return parts[1] if parts[0] == 'model_zoo' and len(parts) > 1 else None


def level(name):
    return next(number for number, rooms in enumerate(LEVELS) if name in rooms)


def allowed(package):
    """The packages that `package` may import."""
    if package == 'model_zoo':
        return {'model_zoo'}
    if package in FAMILIES:
        return {'model_zoo', package}
    return {'model_zoo', *FAMILIES, *(TOP if package == 'scripts' else [package])}


def below_app():
    """Modules that know nothing of commands."""
    return [
        module
        for module in GRAPH
        if first(module) in FAMILIES or (first(module) == 'model_zoo' and room(module) != 'app')
    ]


def source(module):
    path = ROOT.joinpath(*module.split('.'))
    return path / '__init__.py' if path.is_dir() else path.with_suffix('.py')


@pytest.mark.parametrize('package', PACKAGES)
def test_arrows(package):
    ours = set(PACKAGES) if package in TOP else {*PACKAGES, 'import_module'}
    wrong = {
        module: {first(name) for name in imports(module)}
        & ours - allowed(package) - EXCEPTIONS.get(module, set())
        for module in in_package(package)
    }
    assert not {module: found for module, found in wrong.items() if found}


def test_arrows_inside_of_model_zoo():
    wrong = {
        (module, name)
        for module in in_package('model_zoo')
        for name in imports(module)
        if module not in FACES
        and first(name) == 'model_zoo'
        and (name in FACES or level(room(name)) < level(room(module)))
    }
    assert not wrong


@pytest.mark.parametrize('package', FAMILIES)
def test_families_know_neither_training_nor_tasks_nor_commands(package):
    above = {'training', 'tasks', 'app'}
    wrong = {(m, name) for m in in_package(package) for name in imports(m) if room(name) in above}
    assert not wrong


def test_modules_import_one_another_in_no_circle():
    assert circles({module: imports(module) & GRAPH.keys() for module in GRAPH}) == []


def test_the_parts_of_a_folder_import_one_another_in_no_circle():
    graph = {
        module: {each for each in found if first(each.name) not in EXCEPTIONS.get(module, ())}
        for module, found in GRAPH.items()
    }
    for folder in {'', *(module.rpartition('.')[0] for module in GRAPH)} - {'scripts'}:
        assert circles(children(graph, folder)) == [], folder


def test_no_flags_below_app():
    """Neither argparse, nor a namespace of arguments, nor a message that tells of a flag."""
    wrong = []
    for module in below_app():
        tree = parse(source(module))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        if 'argparse' in imports(module):
            wrong.append((module, 'argparse'))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                named = [*node.args.args, *node.args.kwonlyargs]
                wrong += [(module, node.lineno, 'args') for each in named if each.arg == 'args']
            elif isinstance(node, ast.Constant) and '--' in str(node.value):
                if id(node) in documentation:
                    continue
                # whole commands, of pip and of what to do next, are no messages
                text = re.sub(r'(pip install|zoo [a-z]+) .*', '', str(node.value))
                if re.search(r'(?<![\w-])--[a-z]\w', text):
                    wrong.append((module, node.lineno, text))
    assert not wrong


@pytest.mark.parametrize('module', EXCEPTIONS)
def test_exceptions_are_needed_and_lazy(module):
    found = [(first(each.name), each.lazy) for each in GRAPH[module]]
    for name in EXCEPTIONS[module]:
        assert {lazy for other, lazy in found if other == name} == {True}
    loaded = {name for name, lazy in found if not lazy}
    assert not loaded & {*FAMILIES, *TOP, *HEAVY} - allowed(first(module))


@pytest.mark.parametrize('package', PACKAGES)
def test_heavy_peers_are_never_imported(package):
    wrong = {
        module: imports(module) & HEAVY - EXCEPTIONS.get(module, set())
        for module in in_package(package)
        if not module.startswith('scripts.benchmark.')
    }
    assert not {module: found for module, found in wrong.items() if found}
