"""The family BERT, and the models that it adds to the zoo."""

import functools

from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family
from model_zoo.zoo import model_function

from . import heads  # the package itself imports the variants, which register themselves
from .catalogue import FIXED, HPARAMS, OPTIONS, PRETRAINED
from .model import BertModel
from .tokenizer import BertSPTokenizer, BertTokenizer

__all__ = ['BERT', 'bert_6_384_12', 'bert_12_768_12', 'bert_24_1024_16']

register_pretrained(*PRETRAINED)

#: what ``open_model`` knows of BERT
BERT = register_family(
    Family(
        'bert',
        BertModel,
        {cls.task: cls for cls in vars(heads).values() if getattr(cls, 'task', None)},
        (BertTokenizer, BertSPTokenizer),
        fixed=FIXED,
        hparams={**HPARAMS, 'token_type_vocab_size': ('type_vocab_size',)},
        release_names=('bert_config.json',),
    )
)


_add = functools.partial(
    model_function,
    BERT,
    module=__name__,
    options=OPTIONS,
    may_lack=('decoder', 'classifier'),
    notes="""use_pooler : bool, default True
    use_decoder, use_classifier : bool, optional
        Whether to have the masked language model's head and the next sentence classifier. By
        default they are there if the weights have them; True asks for them, and is an error where
        the weights lack them, unless `pretrained_allow_missing`.
    pretrained_allow_missing : bool, default False
        Whether parts that the weights lack are initialized at random.
    ignore_extra : bool, optional
        Accepted for GluonNLP's sake: parts of the weights that the block lacks never matter.
    output_attention, output_all_encodings, keep_multihead_output : bool, default False
        See `BertModel`.""",
)

bert_12_768_12 = _add('bert_12_768_12', 'BERT base: 12 layers, 768 units, 12 heads.')
bert_24_1024_16 = _add('bert_24_1024_16', 'BERT large: 24 layers, 1024 units, 16 heads.')
bert_6_384_12 = _add('bert_6_384_12', "MiniLM's size: 6 layers, 384 units, 12 heads.")
