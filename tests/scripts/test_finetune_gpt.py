"""scripts/finetune_gpt.py end to end, on a small random model and made-up stories."""

import mxnet as mx
from script_runs import read_json, run

from gpt import OpenAIGPTDoubleHeadsModel
from gpt.tokenizer import OpenAIGPTTokenizer

CASE = 'finetune_gpt'


def test_the_best_model_has_the_special_tokens(trained, script, data):
    tokenizer = OpenAIGPTTokenizer.from_pretrained(trained / 'best_model')
    assert list(tokenizer.special_tokens) == ['_start_', '_delimiter_', '_classify_']
    model = OpenAIGPTDoubleHeadsModel.from_pretrained(str(trained / 'best_model'))
    assert model.config.total_tokens_embeddings == len(tokenizer.vocab) == 60
    context = 'b c . d d . c . b .'
    story = [57, *tokenizer.encode(context), 58, *tokenizer.encode('a b a .'), 59]
    wrong = [57, *tokenizer.encode(context), 58, *tokenizer.encode('x b x .'), 59]
    words = mx.nd.array([[story, wrong]], dtype='int32')
    _, scores = model(words, mx.nd.array([[len(story) - 1] * 2], dtype='int32'))
    assert scores.shape == (1, 2) and scores[0, 0].asscalar() > scores[0, 1].asscalar()


def test_stories_without_answers_are_predicted(script, data, trained, tmp_path):
    argv = ['--model_name', trained / 'best_model', '--do_eval', '--output_dir', tmp_path]
    predictions = (trained / 'predictions.tsv').read_text()
    assert run(script, *argv, '--dev_file', data / 'eval_unlabelled.csv') == 0
    assert read_json(tmp_path, 'inference.json')['dev'] == {}
    found = (tmp_path / 'predictions.tsv').read_text().splitlines()
    wanted = [line[:-1] for line in predictions.splitlines()]
    assert found[1:] == wanted[1:]


def test_some_stories_validate_where_there_are_no_others(toy):
    assert read_json(toy.whole)['stories'] == {'train': 40, 'dev': 120}
    assert (toy.whole / 'predictions.tsv').exists()
    assert (toy.whole / 'model_story_cloze_1.params').exists()
