"""Text generation by Python, command and both protocols: one answer, whatever the road."""

import asyncio
import contextlib
import functools
import json
import pathlib
import shutil
import threading

import pytest
from json_files import cases
from script_runs import load_script, run
from serving import Client

import model_zoo
from export.export import main as export
from model_zoo.errors import InputError
from model_zoo.inference.engines import is_installed
from model_zoo.inference.server import Settings, build_app
from model_zoo.inference.text import MISSING, MISSING_DRAWS

pytest.importorskip('fastapi')

SOME = cases('inference')['SOME']
PROMPTS = SOME * 4
DRAWN = {'temperature': 0.8, 'top_p': 0.9, 'seed': 5, 'max_new_tokens': 12}


def python(folder, prompts, options, **more):
    pipe = model_zoo.pipeline('text-generation', folder, **more)
    found = pipe(prompts, return_full_text=False, **options)
    return [[text['generated_text'] for text in texts] for texts in found]


def command(folder, prompts, options):
    names, output = (
        {'max_new_tokens': 'length', 'num_return_sequences': 'nsamples'},
        folder + '.json',
    )
    flags = [word for n, value in options.items() for word in (f'--{names.get(n, n)}', value)]
    assert run(load_script('generate_gpt2'), folder, *prompts, *flags, '--output', output) == 0
    results = json.loads(pathlib.Path(output).read_text())
    return [[each['text'] for each in result['samples']] for result in results]


@functools.cache  # each server's threads cost 5 MB each, for good
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

    def make(name='config.json', **fields):
        path = tmp_path / f'writer {len(list(tmp_path.iterdir()))}'
        shutil.copytree(writer_folder, path)
        file = pathlib.Path(path, name)
        old = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**old, **fields}))
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
    if is_installed('onnxruntime'):
        export([path, '--format', 'onnx', '--output_dir', path + ' exported'])
        assert python(path + ' exported', PROMPTS[:5], asked) == wanted[:5]
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


GENERATION = cases('inference')['GENERATION']


@pytest.mark.parametrize('name', ['generation_config.json', 'config.json'])
@pytest.mark.parametrize('own', GENERATION)
def test_a_models_own_defaults_hold_on_every_road(folder, own, name):
    plain = python(folder(), SOME, own)
    assert hugging_face(folder(), SOME, own) == plain
    path = folder(name, **own)
    for road in (python, command, hugging_face, openai):
        assert road(path, SOME, {}) == plain, road.__name__
        assert road(path, SOME, {'max_new_tokens': 2}) != plain  # what the caller gives wins


@pytest.mark.parametrize('name', sorted({*MISSING, *MISSING_DRAWS}))
def test_what_is_not_available_is_refused_by_name(folder, name):
    for value, refused in ((0, False), (2, True)):
        path = folder('generation_config.json', **{name: value})
        with pytest.raises(InputError) if refused else contextlib.nullcontext() as caught:
            model_zoo.pipeline(path)('A', do_sample=True, max_new_tokens=1)
    assert caught.value.field == name


def test_a_default_of_a_wrong_type(folder):
    with pytest.raises(InputError) as caught:
        model_zoo.pipeline(folder('generation_config.json', temperature='warm'))
    assert all(name in str(caught.value) for name in ('generation_config.json', 'temperature'))


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
