"""BERT's tokenizers, by the names of ``tokenization.py``."""

from bert import BertTokenizer
from model_zoo.tokenization import BasicTokenizer, WordpieceTokenizer
from model_zoo.tokenization.vocab import load_vocab

__all__ = ['BasicTokenizer', 'BertTokenizer', 'WordpieceTokenizer', 'load_vocab']
