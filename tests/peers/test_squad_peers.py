"""SQuAD against transformers: windows, answers and metrics on real questions."""

import json

import numpy as np
import pytest

from bert import BertTokenizer
from model_zoo.tasks.squad import (
    SquadFeatures,
    best_thresholds,
    encode_squad,
    find_answers,
    read_squad,
    score_v1,
    score_v2,
)

pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
metrics = pytest.importorskip('transformers.data.metrics.squad_metrics')
processors = pytest.importorskip('transformers.data.processors.squad')
pytestmark = [pytest.mark.peers, pytest.mark.data]

LENGTHS = 96, 40, 24  # small, for many windows


@pytest.fixture
def vocab_file(data_dir):
    return str(data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt')


def theirs(folder, name, vocab_file, training):
    processor = processors.SquadV2Processor()
    read = processor.get_train_examples if training else processor.get_dev_examples
    examples = read(str(folder), name)
    tokenizer = transformers.BertTokenizer(vocab_file)
    features = processors.squad_convert_examples_to_features(
        examples, tokenizer, *LENGTHS, training, tqdm_enabled=False
    )
    return examples, features, tokenizer


def ours(path, vocab_file, training):
    squad = read_squad(path, True, training)
    tokenizer = BertTokenizer(vocab_file)
    return SquadFeatures(squad, encode_squad(squad, tokenizer), tokenizer, *LENGTHS)


@pytest.fixture
def few(data_dir, tmp_path):
    """A folder with some of the dev set's paragraphs."""
    content = json.loads((data_dir / 'squad' / 'dev-v2.0-part.json').read_text(encoding='utf-8'))
    content['data'][0]['paragraphs'] = content['data'][0]['paragraphs'][:6]
    (tmp_path / 'dev.json').write_text(json.dumps(content))
    return tmp_path


def load(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


@pytest.mark.parametrize('training', [True, False])
def test_windows(few, vocab_file, training):
    _, expected, _ = theirs(few, 'dev.json', vocab_file, training)
    found = ours(few / 'dev.json', vocab_file, training)
    assert len(found) == len(expected) > 60
    for feature, original in zip(found, expected):
        size = sum(original.attention_mask)
        assert feature.input_ids.tolist() == original.input_ids[:size]
        assert feature.token_types.tolist() == original.token_type_ids[:size]
        if training:
            assert feature.label.tolist() == [original.start_position, original.end_position]


@pytest.mark.parametrize('version_2', [True, False])
def test_answers_and_metrics(few, vocab_file, version_2):
    examples, expected, tokenizer = theirs(few, 'dev.json', vocab_file, False)
    found = ours(few / 'dev.json', vocab_file, False)
    rng = np.random.RandomState(0)
    scores = [rng.randn(2, feature.valid_length) * 3 for feature in found]
    # of an answer that begins within a word, transformers gives the whole word, and
    # pytorch-pretrained-bert and we the part
    within = np.array([token.startswith('##') for token in tokenizer.get_vocab()])
    for feature, (start, _) in zip(found, scores):
        start[within[feature.input_ids]] -= 50
    results = [
        processors.SquadResult(feature.unique_id, start.tolist(), end.tolist())
        for feature, (start, end) in zip(expected, scores)
    ]
    files = [str(few / name) for name in ('predictions', 'nbest', 'odds')]
    metrics.compute_predictions_logits(
        examples, expected, results, 20, 30, True, *files, False, version_2, 1.0, tokenizer
    )
    predictions, nbest = map(load, files[:2])
    answers = find_answers(found, scores, 20, 30, version_2, 1.0)
    assert answers.predictions == predictions
    for name, best in nbest.items():
        assert [each['text'] for each in answers.nbest[name]] == [each['text'] for each in best]
        shares = [each['probability'] for each in best]
        assert [each['probability'] for each in answers.nbest[name]] == pytest.approx(shares)

    questions = found.squad.questions
    if version_2:
        assert answers.null_odds == pytest.approx(load(files[2]))
        original = metrics.squad_evaluate(examples, predictions)
        metrics.find_all_best_thresh(
            original,
            predictions,
            *metrics.get_raw_scores(examples, predictions),
            answers.null_odds,
            {question.id: bool(question.answers) for question in questions},
        )
        assert score_v2(questions, predictions) == pytest.approx(
            {name: value for name, value in original.items() if not name.startswith('best')}
        )
        assert best_thresholds(questions, predictions, answers.null_odds) == pytest.approx(
            {name: value for name, value in original.items() if name.startswith('best')}
        )
    else:
        questions = [question for question in questions if question.answers]
        examples = [example for example in examples if example.answers]
        original = metrics.squad_evaluate(examples, predictions)
        assert score_v1(questions, predictions) == pytest.approx(
            {'exact_match': original['exact'], 'f1': original['f1']}
        )
