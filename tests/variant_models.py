"""Small models of the families like BERT, not initialized, and their tokenizers."""

import string

from tiny import learn_pieces, write_pairs, write_words

import bert
from model_zoo.tokenization.bpe import bytes_to_unicode

SIZES = {
    'hidden_size': 32,
    'num_hidden_layers': 1,
    'num_attention_heads': 2,
    'intermediate_size': 64,
    'max_position_embeddings': 66,
}
SPACE = '\u0120'


def make_roberta(folder):
    """Make a RoBERTa whose vocabulary has bytes, and small letters behind a space."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(bytes_to_unicode().values())
    merges = [(SPACE, letter) for letter in string.ascii_lowercase]
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *letters, *map(''.join, merges), '<mask>']
    write_pairs(folder, tokens, map(' '.join, merges))
    tokenizer = bert.RobertaTokenizer.from_pretrained(str(folder))
    config = bert.RobertaConfig(vocab_size=len(tokens), **SIZES)
    return bert.RobertaModel(config, use_decoder=True), tokenizer


def _word_pieces(folder):
    """Return a tokenizer of letters and their continuations."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = string.ascii_lowercase + string.digits + string.punctuation
    further = [f'##{letter}' for letter in string.ascii_lowercase]
    return bert.BertTokenizer(write_words(folder, [*letters, *further]))


def make_distilbert(folder):
    tokenizer = _word_pieces(folder)
    config = bert.DistilBertConfig(
        vocab_size=len(tokenizer),
        dim=32,
        n_layers=1,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=64,
    )
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
MAKERS = {
    'roberta': make_roberta,
    'distilbert': make_distilbert,
    'electra': make_electra,
    'xlmr': make_xlmr,
}
