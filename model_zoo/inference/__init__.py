"""Models in use: from texts to results, by the pipeline of a task."""

from __future__ import annotations

import os
from typing import Any, Literal, Union, overload

from ..errors import InputError, UnknownNameError, did_you_mean
from ..opening import WHERE, locate, open_model
from .classification import (
    MultipleChoice,
    NextSentence,
    Reranking,
    TextClassification,
    ZeroShotClassification,
)
from .engine import Engine, MXNetEngine
from .engines import ENGINES, make_engine
from .pipeline import Pipeline, our_options
from .text import TextGeneration
from .tokens import FillMask, QuestionAnswering, TokenClassification
from .vectors import INDEXES, FeatureExtraction, SentenceSimilarity, nearest, unit_vectors

__all__ = [
    'ENGINES',
    'INDEXES',
    'PIPELINES',
    'Engine',
    'MXNetEngine',
    'Pipeline',
    'make_engine',
    'nearest',
    'pipeline',
    'unit_vectors',
]

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

_Name = Union[str, os.PathLike, None]  # noqa: UP007


@overload
def pipeline(
    task: Literal['text-classification', 'sentiment-analysis'], model: _Name = ..., **options: Any
) -> TextClassification: ...
@overload
def pipeline(
    task: Literal['token-classification', 'ner'], model: _Name = ..., **options: Any
) -> TokenClassification: ...
@overload
def pipeline(
    task: Literal['question-answering'], model: _Name = ..., **options: Any
) -> QuestionAnswering: ...
@overload
def pipeline(task: Literal['fill-mask'], model: _Name = ..., **options: Any) -> FillMask: ...
@overload
def pipeline(
    task: Literal['text-generation'], model: _Name = ..., **options: Any
) -> TextGeneration: ...
@overload
def pipeline(
    task: Literal['feature-extraction'], model: _Name = ..., **options: Any
) -> FeatureExtraction: ...
@overload
def pipeline(
    task: Literal['sentence-similarity'], model: _Name = ..., **options: Any
) -> SentenceSimilarity: ...
@overload
def pipeline(
    task: Literal['multiple-choice'], model: _Name = ..., **options: Any
) -> MultipleChoice: ...
@overload
def pipeline(
    task: Literal['next-sentence'], model: _Name = ..., **options: Any
) -> NextSentence: ...
@overload
def pipeline(
    task: Literal['zero-shot-classification'], model: _Name = ..., **options: Any
) -> ZeroShotClassification: ...
@overload
def pipeline(
    task: Literal['rerank', 'text-ranking'], model: _Name = ..., **options: Any
) -> Reranking: ...
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
    if task not in PIPELINES:
        if model is not None:
            raise UnknownNameError.of('task', task, known)
        task, model = None, task
    if model is None:
        model = DEFAULT_MODELS.get(task)
    if model is None:
        raise InputError(
            f'the task {task} needs a model that was trained for it: pipeline({task!r}, FOLDER)'
            if task
            else f'name a task or a model; the tasks are {", ".join(known)}'
        )
    options = our_options(options)
    if isinstance(options.get('tokenizer'), str):  # its name, as transformers takes it
        if options['tokenizer'] != model:
            raise InputError(
                f'`tokenizer` is {options["tokenizer"]!r}: leave it out, a model has its own, '
                'or give a tokenizer, such as open_model() returns'
            )
        del options['tokenizer']
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
        hint = did_you_mean(model, known)
        if not hint and 'did you mean' not in str(error):
            hint = f'; the tasks are {", ".join(known)}'
        raise UnknownNameError(f'{error}{hint}') from None
    family = located.family
    if task is None:
        opened = open_model(located, **options)
        names = {cls: name for name, cls in family.tasks.items()}
        name = names.get(type(opened.block))
        pipeline_class = next(cls for cls in PIPELINES.values() if name in cls.block_tasks)
    else:
        pipeline_class = PIPELINES[task]
        opened = open_model(located, _block_task(pipeline_class, family), **options)
        _check_trained_for(pipeline_class, family, opened.block)
    engine = make_engine(opened.block, engine, precision, ctx)
    return pipeline_class(opened, engine=engine, **of_calls)


def _block_task(pipeline_class, family):
    for task in pipeline_class.block_tasks:
        if task is None:
            return family.base
        if task in family.tasks:
            return task
    raise InputError(f'a model of the family {family.name} cannot do {pipeline_class.task}')


def _check_trained_for(pipeline_class, family, block):
    """Refuse a model of another task whose head happens to have parameters of the same names."""
    task = family.task_named(block.config.extras.get('architectures'))
    wanted = pipeline_class.block_tasks
    if task is not None and task not in wanted and None not in wanted:
        raise InputError(
            f'the model is a {family.tasks[task].__name__}, for {task}; {pipeline_class.task} '
            f'needs a {type(block).__name__}'
        )
