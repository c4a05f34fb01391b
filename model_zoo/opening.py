"""From the name of a model, a folder or a file to a block and its tokenizer: the only way in.

`locate` finds out once what the model is and where its files are. `open_model` and `open_tokenizer`
take a name or what `locate` returned, read the weights once, and translate their names once. The
properties of a family come from its `Family`: neither blocks nor families are imported here.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import mxnet as mx

from .errors import CheckpointError, InputError, ZooError, reporting
from .pretrained import find_files, get_entry, names_files, no_configuration, resolve
from .pretrained.files import GENERATION_CONFIG, Files
from .pretrained.labels import LABEL_ORDER, Labels, label_fields, label_order
from .pretrained.sentence_modules import KNOWN
from .registry import Family, find_family
from .tokenization.vocab_file import VocabFile
from .util.arrays import check_gpu
from .util.choices import ORIGINALS
from .util.reading import read_json

if TYPE_CHECKING:
    from .blocks.block import ZooBlock
    from .tokenization.tokenizer import Tokenizer

__all__ = ['Located', 'Opened', 'locate', 'open_tokenizer']


@dataclasses.dataclass(frozen=True)
class Located:
    """A model's identity, and the place of its files.

    Parameters
    ----------
    name : str
        The requested name, folder or file.
    family : Family
    files : Files
    model, dataset : str, optional
        The catalogue's names; no model for a folder or a file. No data set means the default one.
    path : str, optional
        The folder or file of the weights if these aren't the catalogue's.
    is_new : bool
        Whether the parameters are to be random ones.
    """

    name: str
    family: Family
    files: Files
    model: str | None = None
    dataset: str | None = None
    path: str | None = None
    is_new: bool = False

    @property
    def fields(self):
        """Fields of the configuration; empty without a configuration."""
        return self.files.fields

    @property
    def architectures(self):
        """Names of classes in the configuration; opening the model reports other values."""
        names = self.fields.get('architectures')
        return [each for each in names if isinstance(each, str)] if isinstance(names, list) else []

    @functools.cached_property
    def labels(self):
        """The `Labels` of the model's outputs."""
        if self.path is None:
            return Labels(self.name, get_entry(self.model, self.dataset).labels)
        return Labels.of(self.path, self.files)


def locate(
    name_or_folder,
    task=None,
    *,
    dataset_name=None,
    weights=True,
    config=None,
    vocab_file=None,
    vocab=True,
    family=None,
    expected_family=None,
    format=None,
    root=None,
    exported=False,
    file_name=None,
):
    """Find out what a model is, and where its files are.

    `open_model` documents the other arguments.

    Parameters
    ----------
    weights : bool or str, optional
        None: only find out what the model is, and fetch nothing large.
    vocab : bool
        Whether the vocabulary is needed.
    expected_family : str, optional
        Name of the family that the model is taken for, unless its files are of a variant of it.

    Returns
    -------
    Located
    """
    name, model, dataset = os.fspath(name_or_folder), None, None
    path = os.fspath(weights) if isinstance(weights, (str, os.PathLike)) else None
    if names_files(name):
        vocab, onnx = vocab and vocab_file is None, (exported, file_name)
        files = find_files(None, None, root, name, weights is True, vocab, format, *onnx)
        if path is not None:
            other = find_files(path=path, root=root, vocab=False)
            files = dataclasses.replace(files, weights=other.weights)
        path = path or name
    else:
        model, dataset = resolve(name, dataset_name)
        # the size of a new model is its vocabulary's
        vocab = (vocab or (weights is False and config is None)) and vocab_file is None
        files = find_files(model, dataset, root, path, bool(weights), vocab, format)
        # by the name of its size it is a BERT like others
        modules = dataset if dataset_name is None and dataset in KNOWN else None
        files = dataclasses.replace(files, modules=modules)
    if config is not None:
        fields = read_json(config, 'the configuration', dict)
        files = dataclasses.replace(files, config=os.fspath(config), fields=fields)
    family = find_family(name, task, family, expected_family, model, files)
    if vocab_file is not None:
        other = find_files(model, dataset, root, vocab_file, weights=False)
        files = files.with_vocab_of(other)
    if weights is False:  # they may have shown the family
        files = dataclasses.replace(files, weights=None)
    return Located(name, family, files, model, dataset, path, weights is False)


#: keywords of `locate` that `open_model` has, too
WHERE = locate.__kwdefaults__.keys() - {'vocab', 'expected_family'}


def _best_fit(blocks, weights):
    """Return the block that the weights fit best."""

    def misfit(block):
        names = block.parameters_by_name()
        missing = [name for name in names if name not in weights.tensors]
        unused = [*weights.unknown, *(name for name in weights.tensors if name not in names)]
        # the weights of a head say what a model is for; every backbone may have a pooler
        return len(missing), sum(name.startswith('^') for name in unused), len(unused)

    return min(blocks, key=misfit)


def open_parts(block_class, weights, options):
    """Return `options`; a backbone's undecided optional parts are used if the weights have them."""
    if block_class.backbone is not None:
        return options
    parts = [part for part in block_class.optional_parts if options.get(f'use_{part}') is None]
    present = {name.partition('.')[0] for name in weights.tensors}
    return {**options, **{f'use_{part}': part in present for part in parts}}


class Opened(NamedTuple):
    """The result of `open_model`; `files` says where weights, configuration and vocabulary are."""

    block: ZooBlock
    tokenizer: Tokenizer
    files: Files


def open_model(
    name_or_folder: str | os.PathLike | Located,
    task: str | type | None = None,
    *,
    dataset_name: str | None = None,
    weights: bool | str | os.PathLike | dict[str, Any] = True,
    config: str | os.PathLike | None = None,
    vocab_file: str | os.PathLike | None = None,
    tokenizer: Tokenizer | Literal[False] | None = None,
    do_lower_case: bool | None = None,
    family: str | None = None,
    format: str | None = None,
    exact: bool = False,
    trains: bool = False,
    ctx: Any = None,
    root: str | os.PathLike | None = None,
    exported: bool = False,
    file_name: str | None = None,
    dtype: Any = 'float32',
    **options: Any,
) -> Opened:
    """Open a model and its tokenizer.

    The name or a folder's configuration shows the family. The files show the format of the weights:
    this project's, Hugging Face's (safetensors or ``.bin``, in one or several files), a TensorFlow
    checkpoint, or OpenAI's NumPy files.

    Parameters
    ----------
    name_or_folder : str
        A name such as ``'bert_12_768_12'`` or ``'bert-base-uncased'``; a folder with weights,
        vocabulary and configuration (``config.json``, ``bert_config.json`` or ``hparams.json``); or
        a file of weights beside them. The folder may also be on the Hugging Face hub
        (``'owner/name'``, ``'owner/name@revision'``), in an archive (``model.tar.gz``), or at an
        ``https://`` address. Or the result of `locate` for one of these, which has already used the
        arguments about places.
    task : str or type, optional
        What the block is for, such as ``'classification'``, ``'question_answering'`` or
        ``'language_model'``; or the block's class, or its name. By default a name opens the model
        that ``get_model`` builds, and a folder the model that its files name, or that fits.
    dataset_name : str, optional
        Data set of a named model's weights; by default the model's usual one.
    weights : bool, str or dict of str to array
        A path, or arrays by the names of any format: weights instead of the name's or folder's.
        False: a new model with random parameters.
    config : str, optional
        Path of the configuration, if it isn't beside the weights.
    vocab_file : str, optional
        Path of a vocabulary to use instead of the weights' own.
    tokenizer : Tokenizer or False, optional
        Used instead of the weights' own. False: none is opened, and a folder needs no vocabulary.
    do_lower_case : bool, optional
        Whether the tokenizer lower-cases texts; by default as the vocabulary requires.
    family : str, optional
        Name of the family, if a folder's files don't show it.
    format : str, optional
        One of `model_zoo.util.choices.WEIGHTS_FORMATS`, such as ``'tensorflow'``, if a folder has
        weights in several.
    exact : bool
        Whether the weights must have all parameters of the block, including the task's head. A
        backbone has the same parts as the weights.
    trains : bool
        Whether the block is opened to be trained, so that new parameters get no warning.
    ctx : mx.Context or list of mx.Context, optional
        Default: the CPU.
    root : str, optional
        The cache of weights, by default ``$MXNET_HOME/models``.
    exported : bool
        Whether a folder of an exported ONNX file will do. Its block has no parameters, but names
        the file for `model_zoo.inference.make_engine`.
    file_name : str, optional
        The ONNX file to take, of several in a folder and its subfolder ``onnx``: needs `exported`.
    dtype : str, type or numpy.dtype
        Precision of the block, whatever precision the weights have; see `ZooBlock.cast`.
    **options
        Fields of the configuration to set (``num_labels=3``, ``id2label={0: 'bad', 1: 'good'}``);
        others go to the block's class.

    Returns
    -------
    Opened
        With a `task`, and unless `exact`, missing parameters are initialized at random, and a
        warning names them.

    Raises
    ------
    UnknownNameError
        If there is no such model, data set or task.
    PretrainedNotFoundError
        If no source has the files.
    CheckpointError
        If the weights are damaged, belong to another family, or don't fit.
    InputError
        If a folder lacks a file, or the vocabulary doesn't fit.

    Examples
    --------
    >>> block, tokenizer, files = open_model('all-MiniLM-L6-v2', 'classification', num_labels=3)
    >>> batch = tokenizer.encode_batch(['A cat.', 'A dog barks.'])
    >>> block.num_labels, files.source
    (3, 'Python package')
    """
    state_dict, located = weights if isinstance(weights, dict) else None, name_or_folder
    if not isinstance(located, Located):
        located = locate(
            name_or_folder,
            task,
            dataset_name=dataset_name,
            weights=weights if state_dict is None else False,
            config=config,
            vocab_file=vocab_file,
            vocab=tokenizer is None,
            family=family,
            format=format,
            root=root,
            exported=exported,
            file_name=file_name,
        )
    family, files, file = located.family, located.files, None
    source = files.weights if state_dict is None else state_dict
    if source is None and not located.is_new:
        raise InputError(f'{located.name!r} was located without its weights: locate them, too')
    if tokenizer is None or tokenizer is False:
        file = VocabFile(files, do_lower_case) if files.vocab else None
        tokenizer = family.make_tokenizer(file) if tokenizer is None else None
    if ctx:
        check_ctx(ctx)
    ctx = ctx or mx.cpu()
    vocab = None if tokenizer is None else tokenizer.vocab
    config, options = configure(located, vocab, options, task)
    named = list(config.extras.get('architectures') or ())
    block_class = family.zoo_block if task is None else family.block_class(task)
    if state_dict is None and (source or '').endswith('.onnx'):
        block_class = block_class if task else family.block_class(next(iter(named), None))
        block = block_class(config, **options)
        block.onnx_file = source
    elif source is None:
        block = block_class(config, **options)
        for parameter in block.collect_params().values():
            parameter.initialize(ctx=ctx)
    else:
        known = [cls for cls in family.blocks if cls.__name__ in named]
        reader = block_class if task is not None else next(iter(known), family.base)
        weights = reader.read_weights(source, config)
        layers, count = config.num_layers or 0, len(weights.tensors)
        if layers > max(count, 100):  # before they are made
            problem = f'the configuration has {layers} layers, but the weights have {count} arrays'
            raise CheckpointError(f'{problem}: is it damaged?')
        if task is not None and not exact:
            block = block_class(config, **options)
            block.load_weights(weights, ctx, ('^', *block.optional_parts), trains=trains)
        else:
            # sentence-transformers reads the backbone, whatever head its configuration names
            named = [weights.class_name, *(named if files.modules is None else ())]
            classes = [block_class]
            if task is None and located.model is None:
                classes = [cls for cls in family.blocks if cls.__name__ in named] or family.blocks
            blocks = [cls(config, **open_parts(cls, weights, options)) for cls in classes]
            block = _best_fit(blocks, weights) if len(blocks) > 1 else blocks[0]
            block.load_weights(weights, ctx, exact=True)
        is_unnamed = state_dict is None and not config.extras.get('id2label')
        has_labels = any(name.startswith('^classifier.') for name in weights.tensors)
        if is_unnamed and has_labels and label_order(files)[0] == ORIGINALS:
            # saving it makes it another format
            block.config.extras.setdefault(LABEL_ORDER, ORIGINALS)
    if dtype != 'float32' and block.onnx_file is None:
        block.cast(dtype)
    base = block.base
    base.vocab_file = file
    if files.config:
        path = os.path.join(os.path.dirname(files.config), GENERATION_CONFIG)
        base.generation_config = read_json(path, shape=dict, default={})
    return Opened(block, tokenizer, files)


def open_tokenizer(
    name_or_folder, task=None, *, weights=None, vocab_file=None, do_lower_case=None, **where
):
    """Open only the tokenizer; `open_model` documents the arguments."""
    located = locate(name_or_folder, task, weights=None, vocab_file=vocab_file or weights, **where)
    return located.family.make_tokenizer(VocabFile(located.files, do_lower_case))


def configure(located, vocab=None, options=(), task=None):
    """Return the configuration with the fields among the options, and the other options.

    The configuration is the one beside the weights, or the architecture's. A new model has the size
    of `vocab`, by default of the vocabulary among the files.
    """
    family, model, files = located.family, located.model, located.files
    config_class, options = family.base.config_class, dict(options)
    if files.config is not None:
        with reporting(f'the configuration {files.config!r}', errors=ZooError):
            config = config_class.from_dict(files.fields)
    elif model is not None:
        vocab = family.vocab_of(VocabFile(files)) if vocab is None else vocab
        fields = {**family.base.architectures[model], 'vocab_size': len(vocab)}
        if files.weights is None and family.adapt is not None:
            fields = family.adapt(fields)
        config = config_class.from_dict(fields)
    elif os.path.basename(files.weights or '') in family.release_names:
        config = config_class()  # the usual one: OpenAI published one size, without a file for it
    else:
        raise no_configuration(files)
    known = {*config.extras, *(field.name for field in dataclasses.fields(config))} - {'id2label'}
    changes = {name: value for name, value in options.items() if name in known}
    others = {name: value for name, value in options.items() if name not in known}
    id2label, num_labels = others.pop('id2label', None), changes.get('num_labels')
    is_classifier = task and task in (family.tasks.get('classification'), 'classification')
    if id2label is None and located.path is None and is_classifier:
        names = located.labels.names
        if names and not config.extras.get('id2label') and num_labels in (None, len(names)):
            id2label = dict(enumerate(names))
    if id2label is not None:
        changes.update(_labels(id2label, num_labels))
    config = config.changed(changes) if changes else config
    size, rows = 0 if vocab is None else len(vocab), config.embedding_rows
    if size > rows:
        raise InputError(f'the vocabulary does not fit: it has {size} tokens, and the model {rows}')
    return config, others


def _labels(id2label, num_labels):
    """Return the fields that name a block's outputs; InputError for bad names."""
    try:
        names = {int(number): name for number, name in id2label.items()}
    except (AttributeError, TypeError, ValueError):
        names = {}
    if sorted(names) != list(range(len(names) or 1)) or num_labels not in (None, len(names)):
        raise InputError(f'id2label must be as {{0: "bad", 1: "good"}}, not {id2label!r:.200}')
    names = [names[number] for number in sorted(names)]
    return {**label_fields(names), 'num_labels': len(names)}


def check_ctx(ctx):
    """Raise InputError for a GPU that MXNet can't use."""
    for device in ctx if isinstance(ctx, (list, tuple)) else [ctx]:
        if device is not None and device.device_type == 'gpu':
            check_gpu(device.device_id, 'ctx')
