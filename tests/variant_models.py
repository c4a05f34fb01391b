"""Small models of the families like BERT, not initialized, and their tokenizers."""

import json
import string

from tiny import learn_pieces

import bert
from model_zoo.tokenization.bpe import bytes_to_unicode

__all__ = ['MAKERS']

SIZES = {
    'hidden_size': 32, 'num_hidden_layers': 1, 'num_attention_heads': 2, 'intermediate_size': 64,
    'max_position_embeddings': 66,
}  # fmt: skip
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
SPACE = '\u0120'


def make_roberta(folder):
    """Of bytes, and of small letters behind a space."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(bytes_to_unicode().values())
    merges = [(SPACE, letter) for letter in string.ascii_lowercase]
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *letters, *map(''.join, merges), '<mask>']
    ids = {token: number for number, token in enumerate(tokens)}
    (folder / 'vocab.json').write_text(json.dumps(ids), 'utf-8')
    (folder / 'merges.txt').write_text('\n'.join(map(' '.join, merges)), 'utf-8')
    tokenizer = bert.RobertaTokenizer.from_pretrained(str(folder))
    config = bert.RobertaConfig(vocab_size=len(tokens), **SIZES)
    return bert.RobertaModel(config, use_decoder=True), tokenizer


def _word_pieces(folder):
    """Of letters and their continuations."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = string.ascii_lowercase + string.digits + string.punctuation
    tokens = [*SPECIAL, *letters, *(f'##{letter}' for letter in string.ascii_lowercase)]
    (folder / 'vocab.txt').write_text('\n'.join(tokens) + '\n')
    return bert.BertTokenizer(str(folder / 'vocab.txt'))


def make_distilbert(folder):
    tokenizer = _word_pieces(folder)
    config = bert.DistilBertConfig(
        vocab_size=len(tokenizer), dim=32, n_layers=1, n_heads=2, hidden_dim=64,
        max_position_embeddings=64,
    )  # fmt: skip
    return bert.DistilBertModel(config, use_decoder=True), tokenizer


def make_electra(folder):
    tokenizer = _word_pieces(folder)
    config = bert.ElectraConfig(vocab_size=len(tokenizer), embedding_size=16, **SIZES)
    return bert.ElectraModel(config, use_decoder=True), tokenizer


def make_xlmr(folder):
    """Pieces learned from letters and a few words."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ['the cat sat on a red mat', *string.ascii_lowercase, *string.punctuation, '0 1']
    path = folder / 'sentencepiece.bpe.model'
    tokenizer = bert.XLMRobertaTokenizer(learn_pieces(path, lines * 3, 90, hard_vocab_limit=False))
    config = bert.XLMRobertaConfig(vocab_size=len(tokenizer), **SIZES)
    return bert.XLMRobertaModel(config, use_decoder=True), tokenizer


#: name of a family -> function of a folder for the vocabulary -> (model, tokenizer)
MAKERS = {'roberta': make_roberta, 'distilbert': make_distilbert, 'electra': make_electra,
          'xlmr': make_xlmr}  # fmt: skip
