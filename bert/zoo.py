"""The family BERT, and the models that it adds to the zoo."""

from model_zoo.opening import build_model
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family, register_model

from . import distilbert, electra, roberta, xlm_roberta  # noqa: F401  they register models
from .catalogue import HPARAMS, PRETRAINED
from .heads import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from .model import BertModel
from .sentence import BertSentenceEncoder
from .tokenizer import open_tokenizer

__all__ = ['BERT', 'bert_12_768_12', 'bert_24_1024_16', 'bert_6_384_12']

register_pretrained(*PRETRAINED)

#: what ``open_model`` knows of BERT
BERT = register_family(
    Family(
        'bert',
        BertModel,
        {
            'classification': BertForSequenceClassification,
            'tagging': BertForTokenClassification,
            'multiple_choice': BertForMultipleChoice,
            'question_answering': BertForQuestionAnswering,
            'masked_lm': BertForMaskedLM,
            'next_sentence': BertForNextSentencePrediction,
            'pretraining': BertForPreTraining,
            'sentence_embedding': BertSentenceEncoder,
        },
        open_tokenizer,
        vocab_kinds=('wordpiece', 'gluonnlp', 'sentencepiece', 'tokenizers'),
        hparams={**HPARAMS, 'token_type_vocab_size': ('type_vocab_size',)},
        release_names=('bert_config.json',),
    )
)


def _build(
    model,
    use_pooler,
    use_decoder,
    use_classifier,
    pretrained_allow_missing,
    ignore_extra,  # GluonNLP's; what the block has no place for is always passed over
    output_attention,
    output_all_encodings,
    keep_multihead_output,
    **arguments,
):
    options = {
        'use_pooler': use_pooler,
        'use_decoder': use_decoder,
        'use_classifier': use_classifier if use_pooler else bool(use_classifier),
        'output_attentions': output_attention,
        'output_all_encodings': output_all_encodings,
        'keep_multihead_output': keep_multihead_output,
    }
    may_lack = ('decoder', 'classifier') if pretrained_allow_missing else ()
    return build_model(BERT, model, options=options, may_lack=may_lack, **arguments)


@register_model
def bert_12_768_12(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, token_type_vocab_size=None,
    activation=None, layer_norm_eps=None, dropout=None, use_pooler=True, use_decoder=None,
    use_classifier=None, pretrained_allow_missing=False, ignore_extra=None,
    output_attention=False, output_all_encodings=False, keep_multihead_output=False,
):  # fmt: skip
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
    return _build('bert_12_768_12', **locals())


@register_model
def bert_24_1024_16(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, token_type_vocab_size=None,
    activation=None, layer_norm_eps=None, dropout=None, use_pooler=True, use_decoder=None,
    use_classifier=None, pretrained_allow_missing=False, ignore_extra=None,
    output_attention=False, output_all_encodings=False, keep_multihead_output=False,
):  # fmt: skip
    """BERT large: 24 layers, 1024 units, 16 heads; the arguments are `bert_12_768_12`'s."""
    return _build('bert_24_1024_16', **locals())


@register_model
def bert_6_384_12(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, token_type_vocab_size=None,
    activation=None, layer_norm_eps=None, dropout=None, use_pooler=True, use_decoder=None,
    use_classifier=None, pretrained_allow_missing=False, ignore_extra=None,
    output_attention=False, output_all_encodings=False, keep_multihead_output=False,
):  # fmt: skip
    """MiniLM's size: 6 layers, 384 units, 12 heads; the arguments are `bert_12_768_12`'s.

    The default data set is 'all_minilm_l6_v2' (sentence-transformers).
    """
    return _build('bert_6_384_12', **locals())
