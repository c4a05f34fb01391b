"""Real clients against the server on 127.0.0.1: openai and huggingface_hub."""

import os

import numpy as np
import pytest

from model_zoo.inference import pipeline
from model_zoo.inference.server import Settings, build_app

pytest.importorskip('uvicorn')
pytest.importorskip('fastapi')

KEY = 'secret'
CONTEXT = 'The cat sleeps in Paris. ' * 10


@pytest.fixture(scope='module')
def app(pipelines):
    return build_app(pipelines, Settings(api_key=KEY))


# -- OpenAI ----------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def openai_client(served_at):
    openai = pytest.importorskip('openai')
    with openai.OpenAI(base_url=f'http://{served_at}/v1', api_key=KEY, max_retries=0) as client:
        yield client


def test_openai_embeddings(openai_client, pipelines):
    texts, pipeline = ['the cat', 'good film .'], pipelines['owner/vectors']
    wanted = pipeline(texts, return_tensors=True, pooling='mean', normalize=True)
    found = openai_client.embeddings.create(model='owner/vectors', input=texts)  # base64
    np.testing.assert_allclose([each.embedding for each in found.data], wanted, atol=1e-6)
    assert found.usage.prompt_tokens == 9  # [CLS] and [SEP] count
    options = {'encoding_format': 'float', 'dimensions': 16}
    found = openai_client.embeddings.create(model='owner/vectors', input=texts[0], **options)
    np.testing.assert_allclose([each.embedding for each in found.data], wanted[:1], atol=1e-6)


def test_openai_completions(openai_client, pipelines):
    pipeline, create = pipelines['writer'], openai_client.completions.create
    options = {'max_new_tokens': 12, 'return_full_text': False}
    wanted = pipeline(['The model', 'A'], **options)
    found = create(model='writer', prompt=['The model', 'A'], max_tokens=12, temperature=0)
    assert [each.text for each in found.choices] == [each[0]['generated_text'] for each in wanted]
    options = {'max_tokens': 12, 'temperature': 0, 'echo': True, 'best_of': 1, 'logit_bias': {}}
    found = create(model='writer', prompt='The model', **options)
    assert found.choices[0].text == 'The model' + wanted[0][0]['generated_text']
    assert found.usage.prompt_tokens == len(pipeline.encode_prompt('The model'))
    assert found.usage.completion_tokens <= 12 and found.choices[0].finish_reason == 'length'


def test_openai_completions_that_stream(openai_client):
    options = {'model': 'writer', 'prompt': ['The', 'A model'], 'max_tokens': 10, 'temperature': 0}
    whole = openai_client.completions.create(**options)
    texts = ['', '']
    stream = {'stream': True, 'stream_options': {'include_usage': True}}
    chunks = list(openai_client.completions.create(**options, **stream))
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [each.text for each in whole.choices]
    assert len(chunks) > 10 and chunks[-1].usage == whole.usage
    stop = whole.choices[0].text[4:7]
    options.update(prompt='The', stop=[stop])
    cut = openai_client.completions.create(**options).choices[0]
    assert stop not in cut.text and cut.finish_reason == 'stop'
    chunks = openai_client.completions.create(**options, stream=True)
    assert ''.join(chunk.choices[0].text for chunk in chunks) == cut.text


def test_openai_models_and_errors(openai_client, served_at, pipelines):
    import openai

    assert [each.id for each in openai_client.models.list()] == list(pipelines)
    assert openai_client.models.retrieve('owner/vectors').id == 'owner/vectors'
    with pytest.raises(openai.NotFoundError):
        openai_client.embeddings.create(model='no', input='a')
    with pytest.raises(openai.BadRequestError):
        openai_client.completions.create(model='writer', prompt='a', max_tokens=0)
    with (
        openai.OpenAI(base_url=f'http://{served_at}/v1', api_key='no', max_retries=0) as other,
        pytest.raises(openai.AuthenticationError),
    ):
        other.models.list()


# -- Hugging Face ----------------------------------------------------------------------------------


@pytest.fixture
def hub_client(served_at, monkeypatch):
    from huggingface_hub import InferenceClient, constants
    from local_hub import close_session

    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
    close_session()
    yield lambda name: InferenceClient(f'http://{served_at}/models/{name}', token=KEY)
    monkeypatch.undo()
    close_session()


def test_huggingface_hub(hub_client, pipelines):
    found = hub_client('nli').text_classification('the cat')
    wanted = [each['score'] for each in pipelines['nli']('the cat', top_k=None)]
    assert [each.score for each in found] == pytest.approx(wanted, abs=1e-5)
    found = hub_client('nli').zero_shot_classification('the cat', ['good', 'bad'])
    pipe = pipeline('zero-shot-classification', os.path.dirname(pipelines['nli'].files.config))
    wanted = pipe('the cat', candidate_labels=['good', 'bad'])
    assert [each.label for each in found] == wanted['labels']
    assert [each.score for each in found] == pytest.approx(wanted['scores'], abs=1e-5)
    options = {'aggregation_strategy': 'simple'}
    found = hub_client('tagger').token_classification(CONTEXT, **options)
    wanted = pipelines['tagger'](CONTEXT, **options)
    assert [each.word for each in found] == [each['word'] for each in wanted]
    found = hub_client('squad').question_answering('where ?', CONTEXT)
    assert found.answer == pipelines['squad']('where ?', CONTEXT)['answer']
    vectors = hub_client('owner/vectors')
    found = vectors.feature_extraction('the cat', normalize=True)
    assert np.shape(found) == (1, 4, 16)
    assert np.linalg.norm(found[0][0]) == pytest.approx(1, abs=1e-5)
    assert len(vectors.sentence_similarity('the cat', other_sentences=['a dog', 'a'])) == 2


def test_huggingface_hub_text_generation(hub_client, pipelines):
    client, prompt = hub_client('writer'), 'The model'
    (wanted,) = pipelines['writer'](prompt, max_new_tokens=8, return_full_text=False)
    options = {'max_new_tokens': 8, 'return_full_text': False}
    assert client.text_generation(prompt, **options) == wanted['generated_text']
    pieces = list(client.text_generation(prompt, **options, stream=True))
    assert ''.join(pieces) == wanted['generated_text'] and len(pieces) > 1
    found = client.text_generation(prompt, **options, repetition_penalty=5.0)
    wanted = pipelines['writer'](prompt, repetition_penalty=5.0, **options)
    assert found == wanted[0]['generated_text'] != ''.join(pieces)
    last = pipelines['writer'].tokenizer.decode(pipelines['writer'].encode_prompt(prompt)[-1:])
    (wanted,) = pipelines['writer'](last, **options)
    assert client.text_generation(prompt, **options, truncate=1) == wanted['generated_text']
    found = client.text_generation(prompt, **options, details=True)
    assert found.details.generated_tokens == len(found.details.tokens) <= 8
