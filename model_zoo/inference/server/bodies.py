"""The bodies of requests: each endpoint's is declared here, for its checks and for OpenAPI.

This needs Pydantic, of the extra ``serve``, so it is imported where routes are made. The options of
a task are declared by its pipeline, for Python too.
"""

from typing import Annotated, Any, Literal

import pydantic
import pydantic_core

from ...errors import InputError, UnknownNameError, reporting
from .. import PIPELINES
from ..pipeline import COUNT

Count = pydantic.conint(strict=True, ge=1, le=COUNT['maximum'])
Seed = pydantic.conint(strict=True, ge=0, le=2**32 - 1)
Temperature = pydantic.confloat(strict=True, ge=0, le=1e6)
Share = pydantic.confloat(strict=True, gt=0, le=1)
#: numbers that this server doesn't use, so it takes only the value that changes nothing
Zero = pydantic.confloat(strict=True, ge=0, le=0)
One = pydantic.confloat(strict=True, ge=1, le=1)
Stop = pydantic.conlist(pydantic.constr(strict=True, min_length=1, max_length=1000), max_length=64)
_IDS = {'type': 'array', 'items': {'type': 'integer', 'minimum': 0}}
_PROMPTS = [
    {'type': 'string'},
    {'type': 'array', 'items': {'type': 'string'}},
    _IDS,
    {'type': 'array', 'items': _IDS},
]


class Body(pydantic.BaseModel):
    """An object of a request. A field that is null is as if it weren't there."""

    model_config = pydantic.ConfigDict(strict=True, extra='forbid', allow_inf_nan=False)

    @pydantic.model_validator(mode='before')
    @classmethod
    def _known_fields(cls, content):
        if not isinstance(content, dict):
            return content
        if cls.model_config['extra'] == 'forbid':  # Pydantic would keep an error for each name
            for name in content:
                UnknownNameError.check('field', name, cls.model_fields)
        return {name: value for name, value in content.items() if value is not None}

    @classmethod
    def read(cls, body):
        """The request of a body of JSON."""
        with reporting('the body of the request is not JSON', errors=ValueError):
            content = pydantic_core.from_json(bytes(body))
        if not isinstance(content, dict):
            raise InputError(f'the body must be a JSON object, not {type(content).__name__}')
        return cls.of(content)

    @classmethod
    def of(cls, content):
        """The request of JSON that is read already; see `read`."""
        try:
            return cls.model_validate(content)
        except pydantic.ValidationError as error:
            raise cls._refusal(error.errors(include_url=False)) from None

    @classmethod
    def _refusal(cls, errors):
        """One line about the first error; all errors of a field that may have several types."""
        first, (name, *_) = errors[0], errors[0]['loc'] or ('the body',)
        if first['type'] == 'missing':
            return InputError(f'{".".join(map(str, first["loc"]))} is missing')
        cause = first.get('ctx', {}).get('error')
        if isinstance(cause, UnknownNameError):
            return cause
        alike = [error for error in errors if error['loc'][:1] == (name,)]
        if len(alike) == 1:
            name = '.'.join(map(str, first['loc']))
        wanted = dict.fromkeys(
            str(error.get('ctx', {}).get('error') or error['msg']) for error in alike[:4]
        )
        return InputError(f'{name} {_shown(first["input"])}: {", or ".join(wanted)}')


def _shown(value):
    try:
        return f'{value!r:.40}'
    except ValueError:  # a number of thousands of digits
        return type(value).__name__


# -- Hugging Face ---------------------------------------------------------------------------------


class Writing(Body):
    """Parameters of text generation; what isn't a field is an option of its pipeline."""

    model_config = pydantic.ConfigDict(
        extra='allow',
        json_schema_extra=lambda schema: schema['properties'].update(
            PIPELINES['text-generation'].options()
        ),
    )

    details: bool = False
    return_full_text: bool | None = None
    seed: Seed | None = None
    stop: Stop = []
    # Hugging Face's, which this server takes only where they change nothing
    adapter_id: Literal[None] = None
    best_of: One | None = None
    decoder_input_details: Literal[False] = False
    frequency_penalty: Zero | None = None
    grammar: Literal[None] = None
    top_n_tokens: Zero | None = None
    truncate: Literal[None] = None
    typical_p: One | None = None
    watermark: Literal[False] = False

    @property
    def of_pipeline(self):
        """The options of the pipeline."""
        given = dict(self.model_extra)
        if {'temperature', 'top_k', 'top_p'} & {*given}:  # as at Hugging Face, these imply sampling
            given.setdefault('do_sample', True)
        return given if self.seed is None else {**given, 'seed': self.seed}


class HuggingFace(Body):
    """``POST /models/NAME``; what isn't a field of its own is a parameter."""

    model_config = pydantic.ConfigDict(
        extra='allow', json_schema_extra={'example': {'inputs': 'What a fine day.'}}
    )

    inputs: str | list[Any] | dict[str, Any] = pydantic.Field(
        description='a text, an object with texts, or a list of them'
    )
    parameters: dict[str, Any] = pydantic.Field({}, description="options of the model's task")
    options: dict[str, Any] = pydantic.Field(
        {}, description="ignored (Hugging Face's own machines)"
    )
    stream: bool = pydantic.Field(False, description='text generation: stream the tokens')

    @property
    def all_parameters(self):
        """The parameters in the object of this name and beside it, without nulls."""
        given = {**self.model_extra, **self.parameters}
        return {name: value for name, value in given.items() if value is not None}


# -- OpenAI ---------------------------------------------------------------------------------------


def _prompts(value):
    """A list of texts or of lists of token ids; the model checks the ids."""
    values = [value] if isinstance(value, str) or _is_of(value, int) else value
    if not (_is_of(values, str) or (_is_of(values, list) and all(_is_of(v, int) for v in values))):
        raise InputError('it must be a text, token ids, or a list of texts or of token ids')
    return values


def _is_of(values, item_type):
    return type(values) is list and bool(values) and all(type(item) is item_type for item in values)


# Pydantic's own unions would keep an error for each item of a list
Prompts = Annotated[
    Any,
    pydantic.PlainValidator(_prompts),
    pydantic.WithJsonSchema(
        {'anyOf': _PROMPTS, 'description': 'a text, a list of texts, token ids, or a list of those'}
    ),
]


class Embeddings(Body):
    """``POST /v1/embeddings``."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            'example': {'model': 'minilm', 'input': ['A cat sleeps.', 'A kitten is dozing.']}
        }
    )

    model: str
    input: Prompts
    encoding_format: Literal['float', 'base64'] = 'float'
    dimensions: int | None = pydantic.Field(None, description="the model's own size")
    user: str = ''


class StreamOptions(Body):
    """How tokens are streamed."""

    include_usage: bool = False
    include_obfuscation: bool = False


class Completions(Body):
    """``POST /v1/completions``."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            'example': {'model': 'gpt2', 'prompt': 'Once upon a time', 'max_tokens': 20}
        }
    )

    model: str
    prompt: Prompts
    max_tokens: pydantic.conint(strict=True, le=COUNT['maximum']) = 16
    temperature: Temperature = pydantic.Field(1.0, description='0: the most likely token')
    top_p: Share | None = None
    n: Count = 1
    seed: Seed | None = None
    stop: pydantic.constr(strict=True, min_length=1, max_length=1000) | Stop = []
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    echo: bool = pydantic.Field(False, description='return the prompt, too')
    logprobs: Zero | None = pydantic.Field(None, description='0: for the generated tokens')
    user: str = ''
    # fields that this server takes only where they change nothing
    suffix: Literal[''] = ''
    best_of: One | None = None
    presence_penalty: Zero = 0.0
    frequency_penalty: Zero = 0.0
    logit_bias: pydantic.conlist(Any, max_length=0) = []

    @pydantic.field_validator('logit_bias', mode='before')
    @classmethod
    def _no_bias(cls, value):
        return [] if value == {} else value


# -- the page -------------------------------------------------------------------------------------


class SentenceMap(Body):
    """``POST /page/map``."""

    model: str
    texts: pydantic.conlist(str, min_length=2, max_length=200)


class Attentions(Body):
    """``POST /page/attentions``."""

    model: str
    text: str
    text_pair: str | None = None


# -- OpenAPI --------------------------------------------------------------------------------------


def documented(body):
    """A route with this body, for OpenAPI."""
    schema = body.model_json_schema()
    schema = _inlined(schema, schema.pop('$defs', {}))
    if body is HuggingFace:
        schema['properties']['parameters']['anyOf'] = [
            {'title': task, 'type': 'object', 'properties': pipeline.options()}
            for task, pipeline in PIPELINES.items()
            if task != 'text-generation'
        ] + [Writing.model_json_schema()]
    return {'requestBody': {'content': {'application/json': {'schema': schema}}, 'required': True}}


def _inlined(schema, known):
    """A schema with what it refers to in place of the references."""
    if isinstance(schema, list):
        return [_inlined(part, known) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if '$ref' in schema:
        return _inlined(known[schema['$ref'].rpartition('/')[2]], known)
    return {name: _inlined(part, known) for name, part in schema.items()}
