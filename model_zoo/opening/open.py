"""Blocks and tokenizers from names, folders and files."""

import dataclasses
import inspect
import logging
import os
from typing import Any, NamedTuple

import mxnet as mx

from ..errors import did_you_mean
from ..pretrained import Files, find_files, names_files, resolve
from ..tokenization.vocab_file import VocabFile
from ..util.devices import check_gpu
from .family import family_of, no_configuration, small_files
from .weights import check_vocab, classes_of, fit_block, read_weights

__all__ = ['Opened', 'open_block', 'open_model', 'open_tokenizer']

_log = logging.getLogger(__name__)


class Opened(NamedTuple):
    """What `open_model` gives.

    Attributes
    ----------
    block : ZooBlock
    tokenizer : Tokenizer
        The family's, with the vocabulary that belongs to the weights.
    files : model_zoo.pretrained.Files
        Where weights, configuration and vocabulary are.
    """

    block: Any
    tokenizer: Any
    files: Files


def open_model(
    name_or_folder,
    task=None,
    *,
    dataset_name=None,
    weights=True,
    config=None,
    vocab_file=None,
    tokenizer=None,
    do_lower_case=None,
    family=None,
    format=None,
    exact=False,
    ctx=None,
    root=None,
    dtype='float32',
    **options,
):
    """Open a model and its tokenizer.

    The name tells the family, or a folder's configuration does. The format of
    the weights is recognised by the files: our own, Hugging Face's (safetensors or ``.bin``, in
    one or several files), a TensorFlow checkpoint, or OpenAI's NumPy files.

    Parameters
    ----------
    name_or_folder : str
        A name such as ``'bert_12_768_12'`` or ``'bert-base-uncased'``; a folder with weights,
        vocabulary and configuration (``config.json``, ``bert_config.json`` or ``hparams.json``);
        or a file of weights beside them. Such a folder may also be on the Hugging Face hub
        (``'owner/name'``, ``'owner/name@revision'``), in an archive (``model.tar.gz``), or at an
        address that begins with ``https://``.
    task : str or type, optional
        What the block is for, such as ``'classification'``, ``'question_answering'`` or
        ``'language_model'``; or the block's class, or its name. By default a named model is what
        ``get_model`` builds, and a folder's is the one that its files name, or that fits them.
    dataset_name : str, optional
        What the weights of a named model were trained on; by default the model's usual one.
    weights : bool or str
        A path: other weights than the name's or folder's. False: a new model
        with random parameters.
    config : str, optional
        Path of the configuration, if there is none beside the weights.
    vocab_file : str, optional
        Path of a vocabulary to use instead of the one of the weights.
    tokenizer : Tokenizer, optional
        In the place of the one that belongs to the weights.
    do_lower_case : bool, optional
        Whether the tokenizer lowers texts; by default what the vocabulary is for.
    family : str, optional
        Name of the family, if a folder's files don't tell it.
    format : str, optional
        One of `model_zoo.checkpoint.layouts.FORMATS`, such as ``'tensorflow'``, if a folder has
        weights in several.
    exact : bool
        Whether the weights must have all parameters of the block, the task's head included. A
        backbone has the parts that they have.
    ctx : mx.Context or list of mx.Context, optional
        Default: the CPU.
    root : str, optional
        The cache of weights, by default ``$MXNET_HOME/models``.
    dtype : str, type or numpy.dtype
        See `ZooBlock.cast`; whatever the weights are.
    **options
        Fields of the configuration to set (``num_labels=3``); others go to the block's class.

    Returns
    -------
    Opened
        With a `task`, parameters that the weights lack are initialized at random, unless `exact`,
        and a warning names them.

    Raises
    ------
    UnknownNameError
        If there is no such model, data set or task.
    PretrainedNotFoundError
        If the files are in none of the places where they are looked for.
    CheckpointError
        If the weights are damaged, of another family, or don't fit.
    InputError
        If a folder lacks a file, or the vocabulary doesn't fit.

    Examples
    --------
    >>> block, tokenizer, files = open_model('all-MiniLM-L6-v2', 'classification', num_labels=3)
    >>> batch = tokenizer.encode_batch(['A cat.', 'A dog barks.'])
    >>> block.num_labels, files.source
    (3, 'Python package')
    """
    model, files = _search(
        name_or_folder, dataset_name, root, weights, config, vocab_file, tokenizer is None, format
    )
    family = family_of(name_or_folder, task, family, model, files)
    file = None
    if tokenizer is None:
        file = VocabFile.of(files).lowered(do_lower_case)
        tokenizer = family.make_tokenizer(file)
    block = _open(family, task, model, files, tokenizer, ctx, dtype, options, exact)
    block.base.vocab_file = file
    return Opened(block, tokenizer, files)


def open_block(
    name_or_folder,
    task=None,
    *,
    config=None,
    family=None,
    format=None,
    exact=False,
    ctx=None,
    root=None,
    dtype='float32',
    state_dict=None,
    **options,
):
    """The block alone, and its files: as `open_model`, but a folder needs no vocabulary.

    Parameters
    ----------
    state_dict : dict of str to array, optional
        Weights to load instead of the file's.
    name_or_folder, task, config, family, format, exact, ctx, root, dtype, **options
        See `open_model`.

    Returns
    -------
    (ZooBlock, model_zoo.pretrained.Files)
    """
    given = state_dict is not None
    sized = given and not names_files(name_or_folder)  # by its vocabulary, if there's nothing else
    model, files = _search(name_or_folder, None, root, not given, config, None, sized, format)
    family = family_of(name_or_folder, task, family, model, files)
    block = _open(family, task, model, files, None, ctx, dtype, options, exact, state_dict)
    block.base.vocab_file = VocabFile.of(files)
    return block, files


def open_tokenizer(
    name_or_folder,
    task=None,
    *,
    dataset_name=None,
    weights=None,
    vocab_file=None,
    do_lower_case=None,
    family=None,
    root=None,
):
    """The tokenizer alone.

    Parameters
    ----------
    name_or_folder, task, dataset_name, weights, vocab_file, do_lower_case, family, root
        See `open_model`.

    Returns
    -------
    Tokenizer
    """
    path = vocab_file or weights
    if names_files(name_or_folder):
        model, own = None, small_files(name_or_folder, root)
        files = find_files(path=path or name_or_folder, root=root, weights=False)
    else:
        model, dataset = resolve(os.fspath(name_or_folder), dataset_name)
        own = files = find_files(model, dataset, root, path, weights=False)
    family = family_of(name_or_folder, task, family, model, own)
    return family.make_tokenizer(VocabFile.of(files).lowered(do_lower_case))


def _search(name, dataset_name, root, weights, config, vocab_file, needs_vocab, format):
    """The model's name, or None for a path, and its files."""
    path = os.fspath(weights) if isinstance(weights, (str, os.PathLike)) else None
    looks = needs_vocab and vocab_file is None
    if names_files(name):
        model = dataset = None
        files = find_files(
            path=name, root=root, weights=weights is True, vocab=looks, format=format
        )
        if path is not None:
            own = find_files(path=path, root=root, vocab=False)
            files = dataclasses.replace(files, weights=own.weights)
    else:
        model, dataset = resolve(os.fspath(name), dataset_name)
        files = find_files(model, dataset, root, path, bool(weights), looks, format)
    if config is not None:
        files = dataclasses.replace(files, config=os.fspath(config))
    if vocab_file is None:
        return model, files
    own = find_files(model, dataset, path=vocab_file, weights=False)
    return model, dataclasses.replace(
        files, vocab=own.vocab, do_lower_case=own.do_lower_case, special_tokens=own.special_tokens
    )


def _open(
    family, task, model, files, tokenizer, ctx, dtype, options, exact=False, state_dict=None
):
    """The block of the files."""
    ctx = ctx or mx.cpu()
    check_ctx(ctx)
    fields = configure(
        family, model, files, lambda: tokenizer.vocab if tokenizer else VocabFile.of(files).load()
    )
    known = {*fields, *(field.name for field in dataclasses.fields(family.config_class))}
    fields.update({each: options.pop(each) for each in list(options) if each in known})
    config = family.config_class.from_dict(fields)
    if tokenizer is not None:
        check_vocab(len(tokenizer.vocab), config)
    blocks = [family.base, family.zoo_block] if task is None else [family.block_class(task)]
    check_options(blocks, options, known)
    if files.weights is None and state_dict is None:
        block = (family.zoo_block if task is None else family.block_class(task))(config, **options)
        for parameter in block.collect_params().values():
            parameter.initialize(ctx=ctx)
    else:
        block_class = family.base if task is None else family.block_class(task)
        source = files.weights if state_dict is None else state_dict
        weights = read_weights(block_class, source, config)
        if task is not None and not exact:
            block = block_class(config, **options)
            block.load_weights(weights, ctx, may_lack=('^', *block.optional_parts))
        else:
            classes = [block_class]
            if task is None:
                classes = [family.zoo_block] if model else classes_of(family, weights, config)
            block = fit_block(classes, config, weights, options, ctx)
    if dtype != 'float32':
        block.cast(dtype)
    return block


def configure(family, model, files, vocab):
    """Fields of the configuration beside the weights, or of the architecture.

    `vocab()` gives the vocabulary, where its size is needed.
    """
    architecture = {} if model is None else family.architectures[model]
    if files.config is not None:
        own = family.config_class.from_json_file(files.config).to_dict()
        other = [name for name, value in architecture.items() if own[name] != value]
        if other:
            _log.warning(
                '%s makes this another size than %s: %s',
                files.config,
                model,
                ', '.join(f'{name} {own[name]}' for name in other),
            )
        return own
    if model is None:
        if os.path.basename(files.weights) in family.release_names:
            return {}  # the usual one: OpenAI published one size, without a file for it
        raise no_configuration(files)
    fields = {**architecture, 'vocab_size': len(vocab())}
    if files.weights is None and family.adapt is not None:
        fields = family.adapt(fields)
    return fields


def check_options(blocks, options, fields):
    """Raise TypeError for a keyword argument that neither a block nor its configuration has."""
    names = set(fields)
    for block in blocks:
        backbone = getattr(block, 'model_class', None) or block
        for each in (*block.__mro__, *backbone.__mro__):
            if '__init__' in vars(each) and each is not object:
                names.update(inspect.signature(each.__init__).parameters)
    for name in options:
        if name not in names:
            raise TypeError(
                f'{blocks[0].__name__} has no keyword argument {name!r}'
                f'{did_you_mean(name, names)}'
            )


def check_ctx(ctx):
    """Raise InputError for a GPU that MXNet can't use."""
    for one in ctx if isinstance(ctx, (list, tuple)) else [ctx]:
        if one.device_type == 'gpu':
            check_gpu(one.device_id, f'ctx is {one}')
