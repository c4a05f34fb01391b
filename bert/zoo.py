"""The models that BERT adds to the zoo."""

from model_zoo.builder import Builder
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import CheckpointError
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import register_model

from .catalogue import PRETRAINED
from .model import BertModel

__all__ = ['bert_12_768_12', 'bert_24_1024_16', 'bert_6_384_12']

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
_OPTIONS = (
    'output_attention',
    'output_all_encodings',
    'keep_multihead_output',
    'use_pooler',
    'use_decoder',
    'use_classifier',
    'pretrained_allow_missing',
    'ignore_extra',
)


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


def _make(
    config,
    found,
    lacks,
    use_pooler=True,
    use_decoder=None,
    use_classifier=None,
    pretrained_allow_missing=False,
    ignore_extra=None,  # GluonNLP's; what the block has no place for is always passed over
    output_attention=False,
    **outputs,
):
    if found is None:
        lacks = ()
    elif lacks is None and None in (use_decoder, use_classifier):
        lacks = _lacking_parts(found.weights, config)
    if use_decoder is None:
        use_decoder = 'decoder' not in lacks
    if use_classifier is None:
        use_classifier = use_pooler and 'classifier' not in lacks
    block = BertModel(
        config,
        use_pooler=use_pooler,
        use_decoder=use_decoder,
        use_classifier=use_classifier,
        output_attentions=output_attention,
        **outputs,
    )
    return block, ('decoder', 'classifier') if pretrained_allow_missing else ()


_build = Builder(BertModel, _HPARAMS, _make, _OPTIONS)


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
