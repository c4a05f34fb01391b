"""From texts to results, by the pipeline of a task."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from ..errors import InputError, UnknownNameError
from ..opening import WHERE, locate, open_model
from .classification import (
    MultipleChoice,
    NextSentence,
    Reranking,
    TextClassification,
    ZeroShotClassification,
)
from .engines import make_engine
from .pipeline_base import Pipeline, our_options
from .text import TextGeneration
from .tokens import FillMask, QuestionAnswering, TokenClassification
from .vectors import FeatureExtraction, SentenceSimilarity

#: pipelines by the names of their tasks
PIPELINES = {
    cls.task: cls
    for cls in (
        TextClassification,
        TokenClassification,
        QuestionAnswering,
        FillMask,
        TextGeneration,
        FeatureExtraction,
        SentenceSimilarity,
        MultipleChoice,
        NextSentence,
        ZeroShotClassification,
        Reranking,
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
) -> TextClassification: ...
@overload
def pipeline(
    task: Literal['question-answering'], model: _Name = ..., **options: Any
) -> QuestionAnswering: ...
@overload
def pipeline(
    task: Literal['text-generation'], model: _Name = ..., **options: Any
) -> TextGeneration: ...
@overload
def pipeline(
    task: _Name = ...,
    model: _Name = ...,
    *,
    engine: str = ...,
    precision: str = ...,
    ctx: Any = ...,
    **options: Any,
) -> Pipeline: ...


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
        Folder or name of a model; the folder of an exported ONNX file, too. Tasks that need no
        fine-tuning have a default model.
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
    if model is None:
        model = DEFAULT_MODELS.get(task)
    if model is None:
        raise InputError(
            f'the task {task} needs a model that was trained for it: pipeline({task!r}, FOLDER)'
            if task
            else f'name a task or a model; the tasks are {", ".join(known)}'
        )
    options = our_options(options)
    if isinstance(options.get('tokenizer'), str) and options.pop('tokenizer') != model:
        raise InputError('`tokenizer` is a name: leave it out, a model has its own')
    options.setdefault('exact', True)
    of_calls = {'max_length', 'batch_tokens'}
    of_calls = of_calls.union(*(cls.Options.model_fields for cls in PIPELINES.values()))
    of_calls = {name: options.pop(name) for name in of_calls & {*options}}
    options['ctx'] = ctx
    where = {name: options.pop(name) for name in WHERE if name in options}
    try:
        located = locate(
            model, vocab=options.get('tokenizer') is None, **{'exported': True, **where}
        )
    except UnknownNameError as error:
        if task is not None:
            raise
        # a task's name, perhaps
        raise UnknownNameError(f'{error}; the tasks are {", ".join(known)}') from None
    family = located.family
    if task is None:
        opened = open_model(located, **options)
        names = {cls: name for name, cls in family.tasks.items()}
        name = names.get(type(opened.block))
        pipeline_class = next(cls for cls in PIPELINES.values() if name in cls.block_tasks)
    else:
        pipeline_class = PIPELINES[task]
        opened = _open_for(pipeline_class, located, options)
    engine = make_engine(opened.block, engine, precision, ctx)
    return pipeline_class(opened, engine=engine, **of_calls)


def _open_for(pipeline_class, located, options):
    """Open a model for a pipeline; one of another task may have parameters of the same names."""
    family, tasks = located.family, pipeline_class.block_tasks
    if None in tasks:
        return open_model(located, family.base, **options)
    able = [task for task in tasks if task in family.tasks]
    if not able:
        raise InputError(f'a model of the family {family.name} cannot do {pipeline_class.task}')
    opened = open_model(located, able[0], **options)
    trained = family.task_named(opened.block.config.extras.get('architectures'))
    if trained not in (None, *tasks):
        raise InputError(
            f'the model is a {family.tasks[trained].__name__}, for {trained}; '
            f'{pipeline_class.task} needs a {type(opened.block).__name__}'
        )
    return opened
