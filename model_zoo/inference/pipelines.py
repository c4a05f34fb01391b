"""From texts to results, by the pipeline of a task."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from ..errors import InputError, UnknownNameError
from ..opening import WHERE, locate, open_model
from . import classification
from .engines import make_engine
from .pipeline_base import Pipeline
from .questions import QuestionAnswering
from .text import TextGeneration
from .tokens import FillMask, TokenClassification
from .vectors import FeatureExtraction, SentenceSimilarity

#: pipelines by the names of their tasks
PIPELINES = {
    cls.task: cls
    for cls in (
        classification.TextClassification,
        TokenClassification,
        QuestionAnswering,
        FillMask,
        TextGeneration,
        FeatureExtraction,
        SentenceSimilarity,
        classification.MultipleChoice,
        classification.NextSentence,
        classification.ZeroShotClassification,
        classification.Reranking,
    )
}
ALIASES = {
    'sentiment-analysis': 'text-classification',
    'ner': 'token-classification',
    'text-ranking': 'rerank',  # the hub's name
}
#: models for tasks that need no fine-tuning
DEFAULT_MODELS = {
    'feature-extraction': 'all-MiniLM-L6-v2',
    'sentence-similarity': 'all-MiniLM-L6-v2',
    'fill-mask': 'bert-base-uncased',
    'next-sentence': 'bert-base-uncased',
    'text-generation': 'gpt2',
}

_Name = str | os.PathLike | None


@overload
def pipeline(
    task: Literal['text-classification', 'sentiment-analysis'], model: _Name = ..., **options: Any
) -> classification.TextClassification: ...
@overload
def pipeline(
    task: Literal['text-generation'], model: _Name = ..., **options: Any
) -> TextGeneration: ...
@overload
def pipeline(task: _Name = ..., model: _Name = ..., **options: Any) -> Pipeline: ...


def pipeline(task=None, model=None, *, engine='mxnet', precision='float32', ctx=None, **options):
    """Make a pipeline: from texts to labels, answers, entities, words, vectors, or more text.

    Parameters
    ----------
    task : str
        Name of a task: 'text-classification' (or 'sentiment-analysis'), 'token-classification' (or
        'ner'), 'question-answering', 'fill-mask', 'text-generation', 'feature-extraction',
        'sentence-similarity', 'multiple-choice', 'next-sentence', 'zero-shot-classification',
        'rerank' (or 'text-ranking'). Or a folder or name of a model, for its own task.
    model : str, optional
        Folder or name of a model; an exported ONNX file or its folder, too, also as others write
        them (``onnx/model.onnx``), of which `file_name` chooses one. Tasks that need no fine-tuning
        have a default model.
    engine, precision : str
        What runs the model, and its precision; see `make_engine`.
    ctx : mx.Context, optional
        Default: the CPU.
    **options
        `max_length` and `batch_tokens` of `Pipeline`; options of the task's calls (``top_k=3``),
        which are then their defaults; other options of `model_zoo.open_model`.

    Returns
    -------
    Pipeline

    Raises
    ------
    UnknownNameError
        If there is no such task or model.
    InputError
        If the model isn't for the task, or its folder doesn't say which task it is for.

    Examples
    --------
    >>> similarity = pipeline('sentence-similarity')
    >>> similarity(('A cat sleeps.', 'A kitten is asleep.')) > 0.5
    True
    """
    task, known = ALIASES.get(task, task), [*PIPELINES, *ALIASES]
    if task not in PIPELINES and (task is None or model is None):
        task, model = None, task if model is None else model
    if task is not None:
        UnknownNameError.check('task', task, known)
    model = DEFAULT_MODELS.get(task) if model is None else model
    if model is None:
        raise InputError(f'name a model, such as the folder of one trained for {task or "a task"}')
    options = {'exact': True, **options, 'ctx': ctx}
    if isinstance(options.get('tokenizer'), str) and options.pop('tokenizer') != model:
        raise InputError('`tokenizer` is a name: leave it out, a model has its own')
    of_calls = {'max_length', 'batch_tokens'}
    of_calls = of_calls.union(*(cls.Options.model_fields for cls in PIPELINES.values()))
    of_calls = {name: options.pop(name) for name in of_calls & {*options}}
    where = {'exported': True, 'vocab': options.get('tokenizer') is None}
    where.update({name: options.pop(name) for name in WHERE if name in options})
    try:
        located = locate(model, **where)
    except UnknownNameError as error:
        if task is not None:
            raise
        # a task's name, perhaps
        raise UnknownNameError(f'{error}; the tasks are {", ".join(known)}') from None
    family, pipeline_class = located.family, PIPELINES.get(task)
    if task is None:
        opened = open_model(located, **options)
        name = {cls: name for name, cls in family.tasks.items()}.get(type(opened.block))
        pipeline_class = next(cls for cls in PIPELINES.values() if name in cls.block_tasks)
    elif None in pipeline_class.block_tasks:
        opened = open_model(located, family.base, **options)
    else:
        able = [name for name in pipeline_class.block_tasks if name in family.tasks]
        if not able:
            raise InputError(f'a model of the family {family.name} cannot do {task}')
        # a model of another task may have parameters of the same names
        trained = family.task_named(located.architectures)
        if trained not in (None, *pipeline_class.block_tasks):
            raise InputError(f'the model was trained for {trained}, not for {task}')
        is_encoder = trained is None and family.base.__name__ in located.architectures
        if is_encoder and 'language_model' not in able:  # whose head is the embedding
            problem = f'{os.fspath(model)!r} is an encoder, without a head for {task}'
            cure = 'fine-tune it, or name a model that has it'
            raise InputError(f'{problem}: {cure}', field='model')
        opened = open_model(located, able[0], **options)
    engine = make_engine(opened.block, engine, precision, ctx)
    return pipeline_class(opened, engine=engine, **of_calls)
