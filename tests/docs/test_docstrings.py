"""The examples of docstrings run and print what they say."""

import doctest
import importlib
import re

import mxnet as mx
import pytest
from test_api_pages import ALL


def cases():
    """Yield a case per docstring with examples, with the marks of what these need."""
    for module in map(importlib.import_module, ALL):
        for test in doctest.DocTestFinder().find(module, module.__name__):
            code, marks = ''.join(example.source for example in test.examples), []
            if re.search('minilm|bert_6_384_12|sentence-similarity', code, re.IGNORECASE):
                marks.append(pytest.mark.weights)
            if re.search("from_pretrained\\('(gpt2|openai-gpt)'", code):
                marks.append(pytest.mark.data)  # the real vocabularies
            if code:
                yield pytest.param(test, marks=marks, id=test.name)


@pytest.mark.parametrize('test', [*cases()])
def test_examples(test, request, shared, tiny_models, registries, folder, monkeypatch):
    fixtures = {'weights': 'minilm_dir', 'data': 'data_dir'}
    for mark in {mark.name for mark in request.node.iter_markers()} & fixtures.keys():
        request.getfixturevalue(fixtures[mark])
    monkeypatch.setenv('MXNET_HOME', str(shared / 'mxnet'))
    monkeypatch.chdir(folder)
    test.globs['mx'] = mx
    printed = []
    result = doctest.DocTestRunner().run(test, out=printed.append)
    assert result.attempted and not result.failed, ''.join(printed)
