"""Folders of exported ONNX files are models like others, for pipelines, commands and the server."""

import json
import re

import numpy as np
import pytest
import tiny_models
from script_runs import load_script, run

import bert
import model_zoo
from export import export as export_script
from model_zoo.errors import InputError

pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
pytestmark = pytest.mark.peers

#: task -> class, labels, an item, and the command for it
MODELS = {
    'classification': (bert.BertForSequenceClassification, ['x', 'y', 'z'], 'the cat', 'predict'),
    'regression': (bert.BertForSequenceClassification, ['mark'], 'the cat', 'predict'),
    'tagging': (bert.BertForTokenClassification, ['O', 'B-X'], 'the cat sleeps', 'tag'),
    'question_answering': (
        bert.BertForQuestionAnswering,
        None,
        {'question': 'where ?', 'context': 'the cat in paris'},
        None,
    ),
    'multiple_choice': (
        bert.BertForMultipleChoice,
        None,
        {'text': 'the', 'choices': ['cat', 'dog sleeps']},
        None,
    ),
    'next_sentence': (bert.BertForNextSentencePrediction, None, ('the cat', 'a dog'), None),
    'masked_lm': (bert.BertForMaskedLM, None, 'the [MASK]', 'fill'),
    'model': (bert.BertModel, None, 'the cat', None),
    'language_model': (None, None, 'the model', None),
}


def save(folder, task):
    block_class, labels, *_ = MODELS[task]
    if block_class is None:
        folder.mkdir()
        return tiny_models.save_gpt2(folder)
    return tiny_models.save_bert(folder, block_class, labels)


def numbers(result):
    """The numbers of a result, and what else it says."""
    if isinstance(result, dict):
        result = list(result.values())
    if not isinstance(result, list):
        return ([result], []) if isinstance(result, float) else ([], [result])
    parts = list(map(numbers, result))
    return sum((part[0] for part in parts), []), sum((part[1] for part in parts), [])


@pytest.mark.parametrize('precision, most', [('float32', 1e-5), ('int8', 0.02)])
@pytest.mark.parametrize('task', MODELS)
def test_an_exported_folder_answers_as_its_model(tmp_path, capsys, task, precision, most):
    *_, item, verb = MODELS[task]
    source, out = save(tmp_path / 'source', task), tmp_path / 'exported'
    argv = ('--task', task, '--model_name', source, '--output_dir', out, '--format', 'onnx')
    assert run(export_script, *argv, '--precision', precision) == 0
    *_, proposed = re.findall('next: (.*)', capsys.readouterr().err)
    assert proposed.endswith(f'zoo serve {out}')  # by its path where it isn't on PATH
    options = {'max_new_tokens': 4} if task == 'language_model' else {}
    wanted, words = numbers(model_zoo.pipeline(source)(item, **options))
    for engine in ('auto', 'onnxruntime', 'openvino'):
        if engine == 'openvino':
            pytest.importorskip('openvino')
        exported = model_zoo.pipeline(str(out), engine=engine)
        assert exported.engine.name == ('onnxruntime' if engine == 'auto' else engine)
        found, others = numbers(exported(item, **options))
        assert others == words or precision == 'int8'
        np.testing.assert_allclose(found, wanted, atol=most)
    if verb:
        capsys.readouterr()
        assert run(load_script(verb), out, item, '--format', 'jsonl') == 0
        assert list(map(json.loads, capsys.readouterr().out.splitlines()))


def test_an_exported_folder_is_not_trained(tmp_path):
    source = save(tmp_path / 'source', 'model')
    argv = ('--task', 'model', '--model_name', source, '--output_dir', tmp_path / 'out')
    assert run(export_script, *argv, '--format', 'onnx') == 0
    with pytest.raises(InputError):
        model_zoo.finetune(
            str(tmp_path / 'out'), 'text-classification', [('a', 'x'), ('b', 'y')] * 2
        )
