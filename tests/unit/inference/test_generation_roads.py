"""Text generation by Python, command and both protocols: one answer, whatever the road."""

import asyncio
import json
import pathlib
import shutil
import threading

import pytest
from script_runs import load_script, run
from serving import Client

import model_zoo
from model_zoo.errors import InputError
from model_zoo.inference.engines import is_installed
from model_zoo.inference.server import Settings, build_app

pytest.importorskip('fastapi')

SOME = [
    'The model',
    'A',
    'O\u2019Neil\u2019s caf\u00e9 is open. \U0001f600',
    'The model',
    'Tokens of a text,',
]
PROMPTS = SOME * 4
DRAWN = {'temperature': 0.8, 'top_p': 0.9, 'seed': 5, 'max_new_tokens': 12}


def python(folder, prompts, options, **more):
    pipe = model_zoo.pipeline('text-generation', folder, **more)
    found = pipe(prompts, return_full_text=False, **options)
    return [[text['generated_text'] for text in texts] for texts in found]


def command(folder, prompts, options):
    names = {'max_new_tokens': 'length', 'num_return_sequences': 'nsamples'}
    flags = [(f'--{names.get(name, name)}', value) for name, value in options.items()]
    output = pathlib.Path(folder, 'texts.json')
    flags = [word for flag in flags for word in flag]
    assert run(load_script('generate_gpt2'), folder, *prompts, *flags, '--output', output) == 0
    return [
        [each['text'] for each in result['samples']] for result in json.loads(output.read_text())
    ]


def client_of(folder):
    pipe = model_zoo.pipeline('text-generation', folder)
    return Client(build_app({'writer': pipe}, Settings(max_sequences=64)))


def hugging_face(folder, prompts, options):
    parameters = {**options, 'return_full_text': False}
    found = client_of(folder).infer('writer', prompts, parameters=parameters)
    return [[text['generated_text'] for text in texts] for texts in found]


def openai(folder, prompts, options):
    names = {'max_new_tokens': 'max_tokens', 'num_return_sequences': 'n'}
    body = {names.get(name, name): value for name, value in options.items()}
    body = {'model': 'writer', 'prompt': prompts, **body}
    answer = client_of(folder).post('/v1/completions', body)
    assert answer.status_code == 200, answer.text
    texts = [each['text'] for each in answer.json()['choices']]
    size = len(texts) // len(prompts)
    return [texts[first : first + size] for first in range(0, len(texts), size)]


@pytest.fixture
def folder(writer_folder, tmp_path):
    """A function that copies the writer, with fields of generation_config.json or config.json."""

    def make(generation=None, config=None):
        path = tmp_path / 'writer'
        shutil.copytree(writer_folder, path, dirs_exist_ok=True)
        if generation is not None:
            (path / 'generation_config.json').write_text(json.dumps(generation))
        if config is not None:
            file = path / 'config.json'
            file.write_text(json.dumps({**json.loads(file.read_text()), **config}))
        return str(path)

    return make


def test_a_seed_means_one_thing(folder):
    """In Python `top_k` is 50 by default, and in the others, which draw by default, all."""
    path, asked = folder(), {**DRAWN, 'do_sample': True, 'top_k': 0}
    wanted = python(path, PROMPTS, asked)
    assert len({tuple(texts) for texts in wanted}) == len(PROMPTS)
    assert command(path, PROMPTS, DRAWN) == openai(path, PROMPTS, DRAWN) == wanted
    assert hugging_face(path, PROMPTS, {**DRAWN, 'top_k': 0}) == wanted
    for engine in ('onnxruntime', 'openvino'):
        if is_installed(engine):
            assert python(path, PROMPTS[:5], asked, engine=engine) == wanted[:5]
    three = {**DRAWN, 'num_return_sequences': 3}
    wanted = python(path, SOME, {**asked, 'num_return_sequences': 3})
    assert command(path, SOME, {**three, 'batch_size': 2}) == openai(path, SOME, three) == wanted


def test_eight_requests_at_once_are_as_alone(folder):
    client, path = client_of(folder()), '/v1/completions'
    pipe = client.models.get('writer').pipeline
    bodies = [
        {'model': 'writer', 'prompt': SOME[n % 5], 'max_tokens': 6 + n, 'seed': n % 3}
        for n in range(8)
    ]
    answers = client.gather(*[('POST', path, {'json': body}) for body in bodies])
    for body, answer in zip(bodies, answers):
        options = {'max_new_tokens': body['max_tokens'], 'seed': body['seed'], 'top_k': 0}
        options.update(do_sample=True, return_full_text=False)
        (wanted,) = pipe(body['prompt'], **options)
        assert answer.json()['choices'][0]['text'] == wanted['generated_text']
        assert ''.join(pipe.stream(body['prompt'], **options)) == wanted['generated_text']


GENERATION = [
    {'do_sample': False, 'repetition_penalty': 1.8, 'no_repeat_ngram_size': 2, 'max_length': 30},
    {'num_beams': 3, 'early_stopping': True, 'num_return_sequences': 2, 'max_new_tokens': 9},
    {
        'do_sample': True,
        'temperature': 0.7,
        'top_k': 9,
        'top_p': 0.9,
        'min_p': 0.01,
        'seed': 3,
        'max_new_tokens': 9,
    },
    {
        'do_sample': False,
        'eos_token_id': [*range(0, 400, 3)],
        'min_length': 9,
        'max_length': 40,
        'suppress_tokens': [1, 2, 69, 110],
        'sequence_bias': [[[70], 9.0]],
        'forced_eos_token_id': 5,
        'begin_suppress_tokens': [70],
        'exponential_decay_length_penalty': [4, 1.5],
    },
]


@pytest.mark.parametrize('where', ['generation', 'config'])
@pytest.mark.parametrize('own', GENERATION)
def test_a_models_own_defaults_hold_on_every_road(folder, own, where):
    plain, path = python(folder(), SOME, own), folder(**{where: own})
    for road in (python, command, hugging_face, openai):
        assert road(path, SOME, {}) == plain, road.__name__
        assert road(path, SOME, {'max_new_tokens': 2}) != plain  # what the caller gives wins


REFUSED = {
    **dict.fromkeys(('penalty_alpha', 'diversity_penalty', 'max_time'), 0.6),
    **dict.fromkeys(('encoder_repetition_penalty', 'guidance_scale', 'num_beam_groups'), 2),
    **dict.fromkeys(('encoder_no_repeat_ngram_size', 'constraints', 'stop_strings'), 3),
    **dict.fromkeys(('force_words_ids', 'dola_layers', 'watermarking_config'), 'low'),
    **dict.fromkeys(('token_healing', 'typical_p', 'epsilon_cutoff', 'eta_cutoff', 'top_h'), 0.5),
}


@pytest.mark.parametrize('name', REFUSED)
def test_what_is_not_available_is_refused_by_name(folder, name):
    with pytest.raises(InputError) as caught:
        model_zoo.pipeline(folder({name: REFUSED[name]}))('A', do_sample=True)
    assert caught.value.field == name
    with pytest.raises(InputError) as caught:
        model_zoo.pipeline(folder({'temperature': 'warm'}))
    assert 'generation_config.json' in str(caught.value) and 'temperature' in str(caught.value)


def test_a_special_token_is_read_as_in_training(folder, capsys):
    pipe = model_zoo.pipeline('text-generation', folder())
    end = pipe.tokenizer.eos_token_id
    assert pipe.encode_prompt('A<|endoftext|> A').count(end) == 1


def test_a_reader_that_is_slower_than_the_model(folder, monkeypatch):
    client = client_of(folder())
    worker = client.models.get('writer').worker
    start = worker.run

    def run_first(job):
        future = start(job)
        future.result()
        return future

    monkeypatch.setattr(worker, 'run', run_first)
    content = {'inputs': 'The', 'stream': True, 'parameters': {'max_new_tokens': 5}}
    answer = client.post('/models/writer', content)
    events = [json.loads(part[5:]) for part in answer.text.split('\n\n') if part]
    assert [event['index'] for event in events] == list(range(1, len(events) + 1))


def test_a_server_is_closed_while_every_model_is_loading():
    held, opened = threading.Event(), []
    later = {name: lambda: opened.append(1) or held.wait(60) for name in ('one', 'two')}
    app = build_app({}, later=later)

    async def live():
        async with app.router.lifespan_context(app):
            while not opened:
                await asyncio.sleep(0.01)

    asyncio.run(live())
    held.set()
    with pytest.raises(model_zoo.errors.ZooError):
        app.state.models.get('two')
