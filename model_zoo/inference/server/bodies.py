"""The bodies of requests: each endpoint's is declared here, for its checks and for OpenAPI.

The options of a task are declared by its pipeline, for Python too.
"""

import json
from typing import Annotated, Any, ClassVar, Literal

import pydantic
import pydantic_core
from pydantic import ConfigDict, Field

from ...errors import InputError, reporting
from ...generation.request import Seed, Share, Temperature
from ...util.fields import Count, Fields
from ..pipelines import PIPELINES
from ..text import TextGeneration

StopText = Annotated[str, Field(min_length=1, max_length=1000)]
Stop = Annotated[list[StopText], Field(max_length=64)]


class Body(Fields):
    """An object of a request. A field that is null is as if it weren't there."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    #: fields that this server doesn't use: it takes only the value that changes nothing
    neutral: ClassVar[dict] = {}
    #: a right request, for OpenAPI and the answer to a wrong one
    example: ClassVar[dict] = {}

    @classmethod
    def read(cls, values, noun='field'):
        if isinstance(values, dict):
            ignored = cls.neutral.items()
            values = {
                name: value
                for name, value in values.items()
                if value is not None and (name, value) not in ignored
            }
        return super().read(values, noun)

    @classmethod
    def of_json(cls, body):
        """Read the request of a body of JSON."""
        hint = f'; an example: {json.dumps(cls.example)}' if cls.example else ''
        with reporting('the body of the request is not JSON', hint, errors=ValueError):
            content = pydantic_core.from_json(bytes(body), cache_strings='keys')
        try:
            return cls.read(content)
        except InputError as error:
            raise InputError(f'{error}{hint}') from error


# -- Hugging Face ---------------------------------------------------------------------------------


class Writing(Body, TextGeneration.Options):
    """Parameters of text generation: the pipeline's options, and Hugging Face's own."""

    details: bool = False
    stop: Stop = []
    truncate: Count | None = Field(None, description='the most tokens of a prompt, its last ones')
    neutral = {'best_of': 1, 'frequency_penalty': 0, 'top_n_tokens': 0, 'typical_p': 1}
    neutral.update(decoder_input_details=False, watermark=False)

    @property
    def of_pipeline(self):
        """The options of the pipeline that are given."""
        names = self.model_fields_set & {*TextGeneration.Options.model_fields}
        return {name: getattr(self, name) for name in names}


class HuggingFace(Body):
    """``POST /models/NAME``; anything without its own field is a parameter."""

    model_config = ConfigDict(extra='allow')
    example = {'inputs': 'What a fine day.'}

    inputs: str | list[Any] | dict[str, Any] = Field(
        description='a text, an object with texts, or a list of them'
    )
    parameters: dict[str, Any] = Field({}, description="options of the model's task")
    options: dict[str, Any] = Field({}, description="ignored (Hugging Face's own machines)")
    stream: bool = Field(False, description='text generation: stream the tokens')

    @property
    def all_parameters(self):
        """The parameters in the object of this name and beside it, without nulls."""
        given = {**self.model_extra, **self.parameters}
        return {name: value for name, value in given.items() if value is not None}


# -- OpenAI ---------------------------------------------------------------------------------------


def _texts(value):
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(type(text) is str for text in texts):
        raise InputError('it must be a text or a list of texts')
    return texts


_TEXTS = {'anyOf': [{'type': 'string'}, {'type': 'array', 'items': {'type': 'string'}}]}
# Pydantic's own list would keep an error for each item
Texts = Annotated[Any, pydantic.PlainValidator(_texts), pydantic.WithJsonSchema(_TEXTS)]


def _inputs(value):
    lists = [value] if isinstance(value, list) and value and type(value[0]) is int else value
    is_ids = isinstance(lists, list) and lists and all(type(each) is list for each in lists)
    return lists if is_ids else _texts(value)


_IDS = {'type': 'array', 'items': {'type': 'integer'}}
Inputs = Annotated[
    Any,
    pydantic.PlainValidator(_inputs),
    pydantic.WithJsonSchema({'anyOf': [*_TEXTS['anyOf'], _IDS, {'type': 'array', 'items': _IDS}]}),
]


class Embeddings(Body):
    """``POST /v1/embeddings``."""

    example = {'model': 'minilm', 'input': ['A cat sleeps.', 'A kitten is dozing.']}

    model: str
    input: Inputs
    encoding_format: Literal['float', 'base64'] = 'float'
    dimensions: Count | None = Field(None, description='how many numbers of each vector are kept')
    user: str = ''


class Completions(Body):
    """``POST /v1/completions``."""

    #: what is done if neither the request nor the model's own defaults say
    usual: ClassVar[dict] = {'do_sample': True, 'top_k': 0, 'max_new_tokens': 16}

    example = {'model': 'gpt2', 'prompt': 'Once upon a time', 'max_tokens': 20}

    model: str
    prompt: Texts
    max_tokens: Count | None = Field(None, description="the model's own, or 16")
    temperature: Temperature | None = Field(
        None, description="0: the most likely token; the model's own, or 1"
    )
    top_p: Share | None = None
    n: Count | None = Field(None, description="the model's own, or 1")
    seed: Seed | None = None
    stop: StopText | Stop = []
    stream: bool = False
    stream_options: dict[Literal['include_usage', 'include_obfuscation'], bool] = {}
    echo: bool = Field(False, description='return the prompt, too')
    user: str = ''
    neutral = {'best_of': 1, 'frequency_penalty': 0, 'presence_penalty': 0, 'logit_bias': {}}
    neutral['suffix'] = ''

    @property
    def of_pipeline(self):
        """The options of the pipeline that are given."""
        names = {'max_tokens': 'max_new_tokens', 'n': 'num_return_sequences', 'seed': 'seed'}
        names.update(temperature='temperature', top_p='top_p')
        return {names[name]: getattr(self, name) for name in self.model_fields_set & {*names}}


# -- the page -------------------------------------------------------------------------------------


class SentenceMap(Body):
    """``POST /page/map``."""

    model: str
    texts: Annotated[list[str], Field(min_length=2, max_length=200)]


class Attentions(Body):
    """``POST /page/attentions``."""

    model: str
    text: str
    text_pair: str | None = None


# -- OpenAPI --------------------------------------------------------------------------------------


def documented(body):
    """Return OpenAPI's entries of a route with this body."""
    schema = {**body.model_json_schema(), 'example': body.example}
    if body is HuggingFace:
        schema['properties']['parameters']['anyOf'] = [
            {**pipeline.Options.model_json_schema(), 'title': task}
            for task, pipeline in PIPELINES.items()
            if task != 'text-generation'
        ] + [Writing.model_json_schema()]
    return {'requestBody': {'content': {'application/json': {'schema': schema}}, 'required': True}}
