"""The models that BERT adds to the zoo."""

import logging
import os
import warnings

import mxnet as mx

from model_zoo.checkpoint import read_tensors
from model_zoo.errors import CheckpointError, InputError
from model_zoo.pretrained import (
    find_vocab,
    find_vocab_file,
    find_weights,
    get_entry,
    register_pretrained,
)
from model_zoo.registry import register_model

from .catalogue import ARCHITECTURES, PRETRAINED
from .config import BertConfig
from .model import BertModel

__all__ = ['bert_12_768_12', 'bert_24_1024_16', 'bert_6_384_12']

_log = logging.getLogger(__name__)

register_pretrained(*PRETRAINED)

# GluonNLP's names of hyper-parameters -> fields of BertConfig
_HPARAMS = {
    'num_layers': ('num_hidden_layers',),
    'units': ('hidden_size',),
    'embed_size': ('hidden_size',),
    'hidden_size': ('intermediate_size',),
    'num_heads': ('num_attention_heads',),
    'max_length': ('max_position_embeddings',),
    'token_type_vocab_size': ('type_vocab_size',),
    'activation': ('hidden_act',),
    'layer_norm_eps': ('layer_norm_eps',),
    'dropout': ('hidden_dropout_prob', 'attention_probs_dropout_prob'),
}
_ALWAYS_ALLOWED = ('dropout',)
_OUTPUTS = {
    'output_attention': 'output_attentions',
    'output_all_encodings': 'output_all_encodings',
    'keep_multihead_output': 'keep_multihead_output',
}


def _overrides(model, hparams, allowed):
    """Fields of BertConfig for GluonNLP's hyper-parameters."""
    fields = {}
    if 'units' in hparams and hparams.get('embed_size', hparams['units']) != hparams['units']:
        raise InputError('embed_size must equal units')
    for name, value in hparams.items():
        if name not in _HPARAMS:
            known = ', '.join([*_HPARAMS, *_OUTPUTS])
            raise InputError(f'{model} has no option {name!r}; known: {known}')
        if not allowed and name not in _ALWAYS_ALLOWED:
            raise InputError(
                f'{name}={value!r} would change the architecture of {model}; '
                'pass hparam_allow_override=True if that is meant'
            )
        fields.update(dict.fromkeys(_HPARAMS[name], value))
    return fields


def _find(model, dataset_name, vocab, pretrained, root):
    """(what was found of the weights or None, vocabulary, parts that the weights lack)."""
    if isinstance(pretrained, str):
        found = find_weights(model, dataset_name, root, path=pretrained, vocab=vocab)
        return found, found.vocab, ()
    if not pretrained:
        if vocab is None:
            vocab, _ = find_vocab(model, dataset_name, root)
        return None, vocab, ()
    if vocab is not None and dataset_name is None:
        raise InputError(
            f'{model}: pretrained weights and their vocabulary belong together; name the '
            'dataset_name of the weights, or pass pretrained=False'
        )
    if vocab is not None:  # GluonNLP's rule
        warnings.warn(f'vocab is ignored: {dataset_name} has its own', stacklevel=5)
    found = find_weights(model, dataset_name, root)
    return found, found.vocab, get_entry(model, dataset_name).lacks


def _lacking_parts(path, config):
    """Which of decoder and classifier the file of weights at `path` doesn't have."""
    tensors, metadata = read_tensors(path)
    try:
        names, _ = BertModel(config).translate(tensors, metadata)
    except CheckpointError as error:
        raise CheckpointError(f'{path}: {error}') from error
    return [
        part
        for part in ('decoder', 'classifier')
        if not any(name.startswith(f'{part}.') for name in names)
    ]


def _warn_of_size(model, fields, found):
    """Warn if the configuration beside the weights, which counts, is of another size."""
    other = [name for name, value in ARCHITECTURES[model].items() if fields[name] != value]
    if other:
        _log.warning(
            '%s makes this another size than %s: %s',
            found.config_path,
            model,
            ', '.join(f'{name} {fields[name]}' for name in other),
        )


def _build(
    model,
    dataset_name=None,
    vocab=None,
    pretrained=True,
    ctx=None,
    root=None,
    use_pooler=True,
    use_decoder=None,
    use_classifier=None,
    pretrained_allow_missing=False,
    ignore_extra=None,  # GluonNLP's; what the block has no place for is always passed over
    hparam_allow_override=False,
    **kwargs,
):
    if isinstance(pretrained, os.PathLike):
        pretrained = os.fspath(pretrained)
    options = {_OUTPUTS[name]: kwargs.pop(name) for name in list(kwargs) if name in _OUTPUTS}
    fields = _overrides(model, kwargs, hparam_allow_override)
    given = isinstance(pretrained, str) and vocab is not None
    found, vocab, lacks = _find(model, dataset_name, vocab, pretrained, root)
    base = {**ARCHITECTURES[model], 'vocab_size': len(vocab)}
    if found is not None:
        base.update(BertModel.config_of(model, found).to_dict())
        _warn_of_size(model, base, found)
    config = BertConfig.from_dict({**base, **fields})
    if isinstance(pretrained, str) and None in (use_decoder, use_classifier):
        lacks = _lacking_parts(found.weights_path, config)
    if use_decoder is None:
        use_decoder = 'decoder' not in lacks
    if use_classifier is None:
        use_classifier = use_pooler and 'classifier' not in lacks
    if len(vocab) > config.vocab_size:
        raise InputError(
            f'the vocabulary does not fit: it has {len(vocab)} tokens, and the weights of {model} '
            f'have {config.vocab_size}'
        )
    block = BertModel(
        config,
        use_pooler=use_pooler,
        use_decoder=use_decoder,
        use_classifier=use_classifier,
        **options,
    )
    if found is not None:
        parts = ('decoder', 'classifier') if pretrained_allow_missing else ()
        block.load_pretrained(found.weights_path, ctx or mx.cpu(), parts)
        if not given:
            path = pretrained if isinstance(pretrained, str) else None
            block.vocab_file = find_vocab_file(model, dataset_name, root, path)
    return block, vocab


@register_model
def bert_12_768_12(**kwargs):
    """BERT base: 12 layers, 768 units, 12 heads (Devlin et al., section 3).

    Parameters
    ----------
    dataset_name : str, optional
        See ``model_zoo.pretrained.list_pretrained``; by default 'book_corpus_wiki_en_uncased'.
    vocab : gluonnlp.vocab.BERTVocab, optional
        With ``pretrained=False``, or for weights from a path.
    pretrained : bool or str, default True
        A string is the path of the weights, a file or a directory.
    ctx : mx.Context or list of mx.Context, default CPU
    root : str, optional
        Cache of weights, by default ``$MXNET_HOME/models``.
    use_pooler : bool, default True
    use_decoder, use_classifier : bool, optional
        Whether to have the masked language model's head and the next sentence classifier. By
        default they are there if the weights have them; True asks for them, and is an error where
        the weights lack them, unless `pretrained_allow_missing`.
    pretrained_allow_missing : bool, default False
        Whether parts that the weights lack are initialized at random.
    ignore_extra : bool, optional
        Accepted for GluonNLP's sake: parts of the weights that the block lacks never matter.
    hparam_allow_override : bool, default False
        Whether these may differ from the model's: num_layers, units, hidden_size, num_heads,
        max_length, token_type_vocab_size, activation, layer_norm_eps. The rate `dropout` always
        may.
    output_attention, output_all_encodings, keep_multihead_output : bool, default False
        See `BertModel`.

    Returns
    -------
    (BertModel, gluonnlp.vocab.BERTVocab)
        The vocabulary in the order of its own file.

    Raises
    ------
    UnknownNameError, PretrainedNotFoundError, CheckpointError, InputError
    """
    return _build('bert_12_768_12', **kwargs)


@register_model
def bert_24_1024_16(**kwargs):
    """BERT large: 24 layers, 1024 units, 16 heads; the arguments are `bert_12_768_12`'s."""
    return _build('bert_24_1024_16', **kwargs)


@register_model
def bert_6_384_12(**kwargs):
    """MiniLM's size: 6 layers, 384 units, 12 heads; the arguments are `bert_12_768_12`'s.

    The default data set is 'all_minilm_l6_v2' (sentence-transformers).
    """
    return _build('bert_6_384_12', **kwargs)
