"""Texts equal to those of transformers' pipelines, for folders with the same files."""

import json
import pathlib

import pytest
from json_files import cases
from tiny_models import save_gpt2

import model_zoo
from gpt2 import GPT2Tokenizer
from model_zoo.inference import text
from model_zoo.opening import open_model

transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

PROMPTS = ['The model', 'A']


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """A function that saves a tiny GPT-2 with fields of config.json and generation_config.json."""
    native = save_gpt2(tmp_path_factory.mktemp('gpt2'))

    def save(config=None, generation=None):
        folder = tmp_path_factory.mktemp('model')
        block, tokenizer, _ = open_model(native)
        block.config.extras.update({'bos_token_id': 7, 'eos_token_id': 390, **(config or {})})
        block.save_pretrained(str(folder), tokenizer, format='huggingface')
        if generation is not None:
            (folder / 'generation_config.json').write_text(json.dumps(generation))
        return str(folder)

    return save


def theirs(folder, prompt, **options):
    pipe = transformers.pipeline('text-generation', folder)
    (result,) = pipe(prompt, **{'do_sample': False, **options}, return_tensors=True)
    ids = result['generated_token_ids']
    ends = options.get('eos_token_id', pipe.model.generation_config.eos_token_id)
    if ids[-1] in (ends if isinstance(ends, list) else [ends]):
        ids = ids[:-1]  # theirs leaves it out only if the tokenizer knows that it's special
    return pipe.tokenizer.decode(ids)  # their pipelines glue a GPT's first new word to the prompt


@pytest.fixture(scope='module')
def new(saved):
    """The tokens that follow the first prompt, without an end."""
    pipe = model_zoo.pipeline(saved())
    return pipe.block.generate([pipe.encode_prompt(PROMPTS[0])], 30)[0][0].tokens


# where a token's id is to be, the place of one in `new` stands as a str
TABLES = cases('generation_peers')
ALL = TABLES['ALL']
#: fields of config.json, where a model has no generation_config.json, and of that
OLD, NEW = TABLES['OLD'], TABLES['NEW']


@pytest.mark.parametrize(
    'config, generation, options',
    [
        ({'eos_token_id': '4'}, None, {'max_new_tokens': 50}),
        ({'eos_token_id': ['4', 390]}, None, {'max_new_tokens': 50}),
        ({'eos_token_id': '1'}, {'eos_token_id': ['4', 0]}, {'max_new_tokens': 50}),
        ({}, {'eos_token_id': 390, 'max_length': 12}, {}),
        ({}, {'eos_token_id': 390, 'max_length': 12}, {'max_new_tokens': 20}),
        ({}, ALL, {}),
        (OLD, None, {}),
        ({**OLD, 'num_beams': 2}, {'eos_token_id': ['4', 390], 'max_length': 20}, {}),
        ({}, NEW, {}),
        ({}, {**NEW, 'eos_token_id': 390, 'num_beams': 2, 'early_stopping': 'never'}, {}),
        ({}, {**NEW, 'typical_p': 0.5, 'epsilon_cutoff': 0.1}, {'do_sample': False}),
        ({}, None, {**ALL, 'bad_words_ids': [['1'], ['4', '4']]}),
    ],
)
def test_what_ends_and_steers_a_text(saved, new, config, generation, options):
    def with_ids(value):
        if isinstance(value, dict):
            return {name: with_ids(part) for name, part in value.items()}
        if isinstance(value, list):
            return [with_ids(part) for part in value]
        return new[int(value)] if str(value).isdigit() and isinstance(value, str) else value

    config, generation, options = map(with_ids, (config, generation, options))
    folder = saved(config, generation)
    ours = model_zoo.pipeline(folder)
    expected = [theirs(folder, prompt, **options) for prompt in PROMPTS]
    assert [each[0]['generated_text'] for each in ours(PROMPTS, **options)] == expected
    at_construction = model_zoo.pipeline('text-generation', folder, **options)
    assert at_construction(PROMPTS[0])[0]['generated_text'] == expected[0]
    # the folder of a model that was opened has them, too
    block, tokenizer, _ = open_model(folder)
    again = pathlib.Path(folder, 'again')
    block.save_pretrained(str(again), tokenizer)
    assert model_zoo.pipeline(str(again))('A', **options)[0]['generated_text'] == expected[1]


def test_an_empty_text_begins_with_bos(saved):
    folder = saved({'bos_token_id': 349})
    ours = model_zoo.pipeline(folder)
    text = ours('', max_new_tokens=8)[0]['generated_text']
    assert ours.tokenizer.decode([349]) + text == theirs(folder, '', max_new_tokens=8)


def test_special_tokens_in_a_text_are_read_as_theirs(saved, tmp_path):
    tokenizer = model_zoo.pipeline(saved()).tokenizer
    words, again = 'The<|endoftext|> model <|endoftext|>\n<|endoftext', str(tmp_path / 'again')
    for split in (False, True):
        tokenizer.split_special_tokens = split
        tokenizer.save_pretrained(str(tmp_path))
        reader = transformers.GPT2Tokenizer.from_pretrained(str(tmp_path))
        reader.save_pretrained(again)  # as a tokenizer.json
        for each in (tokenizer, GPT2Tokenizer.from_pretrained(again)):
            assert each.encode_text(words) == reader(words).input_ids, split


def test_every_field_of_transformers_is_honoured_or_refused():
    """The idle ones have no effect on a text here: speed, drafts of other models, outputs."""
    refused = {*text.MISSING, *text.MISSING_DRAWS}
    known = {*text.TextGeneration.Options.model_fields, *refused, *TABLES['IDLE']}
    assert {*vars(transformers.GenerationConfig())} <= known
