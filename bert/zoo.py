"""The family BERT, and the models that it adds to the zoo.

``models.json`` has the sizes and the weights, also of the variants. The models and data sets of
GluonNLP 0.10 have the names of its tables, with the shorter names of its documentation as aliases.
Sources of the weights: Devlin et al. 2018 (book_corpus_wiki_en, wiki_*, whole_word_masking);
Beltagy et al. 2019 (scibert); Lee et al. 2019 (biobert); Huang et al. 2019 (clinicalbert); SKT
(kobert); deepset (german); GluonNLP (openwebtext); sentence-transformers (all_minilm_l6_v2,
all_mpnet_base_v2); Liu et al. 2019 (roberta); Sanh et al. 2019 (distilbert, distilroberta); Clark
et al. 2020 (electra); Conneau et al. 2020 (xlmr); Song et al. 2020 (mpnet); Lan et al. 2020
(albert); He et al. 2021 (deberta); Warner et al. 2024 (modernbert).
"""

from model_zoo.registry import Family, register_family
from model_zoo.zoo import add_models

from .heads import TASKS
from .model import BertModel
from .tokenizer import BertSPTokenizer, BertTokenizer

_TOKENIZERS, _RELEASED = (BertTokenizer, BertSPTokenizer), ('bert_config.json',)
#: what ``open_model`` knows of BERT
BERT = register_family(Family('bert', BertModel, TASKS, _TOKENIZERS, release_names=_RELEASED))
_NOTES = """use_pooler : bool, default True
    use_decoder, use_classifier : bool, optional
        Whether to have the masked language model's head and the next sentence classifier. By
        default they are there if the weights have them; True asks for them, and is an error where
        the weights lack them, unless `pretrained_allow_missing`.
    pretrained_allow_missing : bool, default False
        Whether parts that the weights lack are initialized at random.
    ignore_extra : bool, optional
        Accepted for GluonNLP's sake: parts of the weights that the block lacks never matter.
    output_attention, output_all_encodings, keep_multihead_output : bool, default False
        See `BertModel`."""
__all__ = ['BERT', *add_models(BERT, __name__, _NOTES)]
