"""scripts/finetune_squad.py end to end, on a small random model and made-up questions."""

import json

import pytest
from contract import evaluate_squad
from contract import squad as arguments
from script_runs import read_json, refusal, run

import export.export as export
import model_zoo

CASE = 'finetune_squad'

ANSWERS = ['predictions.json', 'nbest_predictions.json', 'null_odds.json']


def load(argv, *more):
    return [word for word in argv if word != '--from_scratch'] + list(more)


def test_answers_are_those_that_were_scored(trained, data):
    predictions, nbest, odds = (read_json(trained, name) for name in ANSWERS)
    content = read_json(data, 'dev-2.json')
    entries = [(p['context'], q) for p in content['data'][0]['paragraphs'] for q in p['qas']]
    assert list(predictions) == list(nbest) == list(odds) == [entry['id'] for _, entry in entries]
    exact = 0
    for context, entry in entries:
        name = entry['id']
        assert predictions[name] in context
        assert predictions[name] == '' or odds[name] <= 0
        texts = [each['text'] for each in nbest[name]]
        assert len(texts) == len(set(texts)) <= 21 and '' in texts
        assert sum(each['probability'] for each in nbest[name]) == pytest.approx(1)
        right = [answer['text'] for answer in entry['answers']] or ['']
        exact += predictions[name].rstrip('.') in right
    assert exact / 40 * 100 == read_json(trained)['best']['dev']['exact']


def test_the_threshold_decides(script, trained, data, tmp_path):
    counts = []
    for threshold in ('-100', '100'):
        argv = load(arguments(data, tmp_path / threshold, version=2))
        weights = trained / 'best_model' / 'model.safetensors'
        argv += ['--model_parameters', weights, '--only_predict']
        assert run(script, *argv, '--null_score_diff_threshold', threshold) == 0
        predictions = read_json(tmp_path / threshold, 'predictions.json')
        counts.append(sum(not text for text in predictions.values()))
        assert read_json(tmp_path / threshold, 'null_odds.json') == pytest.approx(
            read_json(trained, 'null_odds.json'), abs=1e-4
        )
    assert counts == [40, 0]


def test_the_folder_says_how_it_reads(script, trained, data, tmp_path):
    """Without flags of windows and thresholds, evaluation and use answer as the training did."""
    expected, model = read_json(trained, 'predictions.json'), trained / 'best_model'
    argv = ['--only_predict', '--version_2', '--dev_file', data / 'dev-2.json', '--model', model]
    assert run(script, *argv, '--output_dir', tmp_path) == 0
    assert read_json(tmp_path, 'predictions.json') == expected
    content = read_json(data, 'dev-2.json')['data'][0]['paragraphs']
    items = [
        {'question': entry['question'], 'context': paragraph['context']}
        for paragraph in content
        for entry in paragraph['qas']
    ]
    found = model_zoo.pipeline(str(model))(items)
    assert [each['answer'] for each in found] == list(expected.values())


def export_to(folder, *more):
    return run(export, '--output_dir', folder, '--seq_length', 40, *more)


@pytest.mark.parametrize('form', [[], ['--one_output']])
def test_exported_model_predicts_the_same(script, trained, data, tmp_path, capsys, form):
    model = ['--model_name', trained / 'best_model', *form]
    assert export_to(tmp_path, '--task', 'question_answering', *model) == 0
    argv = evaluate_squad(data, trained / 'best_model', tmp_path)
    argv += ['--deploy', '--model_prefix', tmp_path / 'question_answering']
    assert run(script, *argv) == 0
    assert read_json(tmp_path, 'predictions.json') == read_json(trained, 'predictions.json')
    metrics = read_json(tmp_path, 'inference.json')['dev']['dev']
    assert metrics['f1'] == read_json(trained)['best']['dev']['f1']
    said = refusal(capsys, script, *argv, '--max_length', '49')
    assert '--max_length 49: the exported model takes 48' in said


def test_a_test_set_without_answers_is_predicted(script, trained, data, tmp_path):
    content = read_json(data, 'dev-2.json')
    for paragraph in content['data'][0]['paragraphs']:
        for entry in paragraph['qas']:
            del entry['answers'], entry['is_impossible']
    (tmp_path / 'test.json').write_text(json.dumps(content))
    argv = evaluate_squad(data, trained / 'best_model', tmp_path / 'out')
    argv[argv.index('--dev_file') + 1] = tmp_path / 'test.json'
    assert run(script, *argv) == 0
    assert read_json(tmp_path / 'out', 'predictions.json') == read_json(trained, 'predictions.json')
    assert read_json(tmp_path / 'out', 'inference.json')['dev'] == {}
