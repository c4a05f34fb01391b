"""Models of the zoo, as `model_zoo.get_model` promises them."""

import os
import warnings

import mxnet as mx

from ..errors import InputError
from ..pretrained import find_files
from ..registry import register_builder_of_places
from ..tokenization.vocab_file import VocabFile
from .family import find_family
from .open import check_ctx, configure, open_block
from .weights import check_vocab, open_parts, read_weights

__all__ = ['build_model']


def build_model(
    family,
    model,
    dataset_name=None,
    vocab=None,
    pretrained=True,
    ctx=None,
    root=None,
    hparam_allow_override=False,
    may_lack=(),
    options=None,
    make=None,
    **hparams,
):
    """Build a model of the zoo as `model_zoo.get_model` promises.

    Parameters
    ----------
    family : Family
    model : str
    dataset_name, vocab, pretrained, ctx, root, hparam_allow_override
        See `model_zoo.get_model`.
    may_lack : tuple of str
        Parts that may be initialized at random if the weights lack them.
    options : dict, optional
        For the block's class; of ``use_...``, None stands for what the weights have.
    make : callable, optional
        ``make(config, files) -> (block, may_lack)``, instead of the class; `files` is None
        for a new model.
    **hparams
        GluonNLP's names of hyper-parameters; None stands for the model's own.

    Returns
    -------
    (block, vocab)
    """
    ctx = ctx or mx.cpu()
    check_ctx(ctx)
    hparams = {name: value for name, value in hparams.items() if value is not None}
    fields = family.fields_of(model, hparams, hparam_allow_override)
    path = os.fspath(pretrained) if isinstance(pretrained, (str, os.PathLike)) else None
    if pretrained is True and vocab is not None:
        if dataset_name is None:
            raise InputError(
                f'{model}: pretrained weights and their vocabulary belong together; name the '
                'dataset_name of the weights, or pass pretrained=False'
            )
        # GluonNLP's rule
        warnings.warn(f'vocab is ignored: {dataset_name} has its own', stacklevel=4)
        vocab = None
    files = find_files(model, dataset_name, root, path, bool(pretrained), vocab is None)
    file = VocabFile.of(files) if vocab is None else None
    vocab = vocab or file.load()
    own = configure(family, model, files, lambda: vocab)
    config = family.config_class.from_dict({**own, **fields})
    check_vocab(len(vocab), config, f'the weights of {model}')
    block_class, options, is_new = family.zoo_block, options or {}, files.weights is None
    if is_new:  # with all parts that aren't refused
        given = {name: value for name, value in options.items() if value is not None}
        parts = {name: True for name in options if name[4:] in block_class.optional_parts}
        options, weights = {**parts, **given}, None
    else:
        weights = read_weights(block_class, files.weights, config)
        options = open_parts(block_class, weights, options)
    if make is None:
        block = block_class(config, **options)
    else:
        block, may_lack = make(config, None if is_new else files)
    if weights is not None:
        block.load_weights(weights, ctx, ('^', *may_lack))
        block.base.vocab_file = file
    return block, vocab


@register_builder_of_places
def _build_at(
    name,
    dataset_name=None,
    vocab=None,
    pretrained=True,
    ctx=None,
    root=None,
    hparam_allow_override=False,
    **options,
):
    """The model of the zoo that is at a place, as `model_zoo.get_model` promises."""
    if pretrained is not True or dataset_name is not None:
        raise InputError(f'{name!r} is a place of weights: leave out pretrained and dataset_name')
    family = find_family(name)
    hparams = {key: options.pop(key) for key in list(options) if key in family.hparams}
    options.update(family.fields_of(name, hparams, hparam_allow_override))
    files = find_files(path=name, root=root, vocab=vocab is None)
    block, _ = open_block(name, family.zoo_block, exact=True, ctx=ctx, root=root, **options)
    return block, vocab or VocabFile.of(files).load()
