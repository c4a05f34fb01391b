"""Tiny models and vocabularies of all families, in memory and in folders."""

import functools
import json

import mxnet as mx
import numpy as np

import bert
import gpt
import gpt2
import transfo_xl
from model_zoo.tokenization.bpe import bytes_to_unicode

#: tokens of BERT's, in Google's order
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
BERT = {'hidden_size': 16, 'num_hidden_layers': 2, 'num_attention_heads': 2}
BERT.update(intermediate_size=32, max_position_embeddings=24)
#: of a BERT for ONNX and INT8
WIDER = {'hidden_size': 32, 'num_attention_heads': 4, 'intermediate_size': 64}
DISTILBERT = {'dim': 16, 'n_layers': 2, 'n_heads': 2, 'hidden_dim': 32}
DROPOUTS = dict.fromkeys(('embedding_dropout', 'attention_dropout', 'mlp_dropout'), 0.1)
DISENTANGLED = {'pos_att_type': ['c2p', 'p2c'], 'share_att_key': True, 'position_buckets': 6}
DECODER = {'n_embd': 16, 'n_layer': 2, 'n_head': 2, 'n_positions': 24}
TRANSFO_XL = {'cutoffs': [3], 'd_model': 16, 'd_embed': 16, 'd_inner': 32}
TRANSFO_XL.update(n_layer=2, n_head=2, d_head=8)


#: class of a configuration -> sizes of it and of its subclasses
SIZES = {
    bert.BertConfig: BERT,
    bert.RobertaConfig: {**BERT, 'max_position_embeddings': 26},
    bert.DistilBertConfig: {**DISTILBERT, 'max_position_embeddings': 24},
    bert.ElectraConfig: {**BERT, 'embedding_size': 8},
    bert.AlbertConfig: {**BERT, 'embedding_size': 8, 'hidden_dropout_prob': 0.1},
    bert.DebertaV2Config: {**BERT, **DISENTANGLED},
    bert.ModernBertConfig: {**BERT, 'local_attention': 2, **DROPOUTS},
    gpt.OpenAIGPTConfig: DECODER,
    gpt2.GPT2Config: DECODER,
    transfo_xl.TransfoXLConfig: TRANSFO_XL,
}


def sizes_of(config_class):
    """Return the tiny sizes of a configuration's class, or of the class that it derives from."""
    return next(SIZES[each] for each in config_class.__mro__ if each in SIZES)


def make_config(config_class, vocab_size=40, **changes):
    """Return a tiny configuration of a family."""
    sizes = {**sizes_of(config_class), **changes}
    if 'n_positions' in sizes:
        sizes.setdefault('n_ctx', sizes['n_positions'])
    return config_class(vocab_size, **sizes)


decoder_config = make_config  # of GPT or GPT-2
bert_config = functools.partial(make_config, bert.BertConfig)
transfo_xl_config = functools.partial(make_config, transfo_xl.TransfoXLConfig)


def make(block_class, vocab_size=40, scale=0.3, **sizes):
    """A block of any family with random parameters."""
    config = make_config(block_class.config_class, vocab_size, **sizes)
    return initialized(block_class(config), scale)


def initialized(block, scale=0.5, seed=1):
    """The block with the same random parameters each time."""
    mx.random.seed(seed)
    block.initialize(mx.init.Normal(scale))
    return block


def randomized(block, scale=0.3, seed=1):
    """The block with random parameters, biases and normalizations among them."""
    initialized(block, scale, seed)
    for parameter in block.collect_params().values():
        if parameter.name.endswith(('bias', 'gamma', 'beta')):
            noise = mx.nd.random.normal(0, scale, parameter.shape)
            parameter.set_data(parameter.data() + noise)
    return block


def write_words(folder, words):
    """Write vocab.txt of BERT's special tokens and `words`; returns its path."""
    path = folder / 'vocab.txt'
    path.write_text('\n'.join([*SPECIAL, *words]) + '\n', 'utf-8')
    return path


def write_pairs(folder, tokens, merges):
    """Write vocab.json and merges.txt; returns their paths."""
    paths = folder / 'vocab.json', folder / 'merges.txt'
    paths[0].write_text(json.dumps({token: n for n, token in enumerate(tokens)}), 'utf-8')
    paths[1].write_text('\n'.join(['#version: 0.2', *merges]) + '\n', 'utf-8')
    return paths


def learn_pieces(path, lines, size, **options):
    """Learn sentence pieces of a text's lines; returns the path of their model."""
    import sentencepiece

    options.update(vocab_size=size, minloglevel=2, sentence_iterator=iter(lines))
    with open(path, 'wb') as file:
        sentencepiece.SentencePieceTrainer.train(model_writer=file, **options)
    return str(path)


def save_bert(
    folder, words, block_class=bert.BertModel, labels=None, extras=None, scale=0.5, seed=1, **sizes
):
    """Save a BERT of the special tokens and `words` in a folder; returns the block.

    Parameters
    ----------
    folder : pathlib.Path
        Made if there is none.
    words : iterable of str
    block_class : type
    labels : list of str, optional
        Of a classifier.
    extras : dict, optional
        What else its configuration says.
    scale : float
        Of the normal distribution from which the parameters are drawn.
    seed : int
    **sizes
        Changes of the configuration; ``cased`` is the tokenizer's, ``format`` that of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lowers, form = not sizes.pop('cased', False), sizes.pop('format', 'native')
    tokenizer = bert.BertTokenizer(write_words(folder, words), do_lower_case=lowers)
    config, options = bert_config(len(tokenizer.vocab), **sizes), {}
    config.extras.update(extras or {})
    if labels:
        config.extras['id2label'] = {str(n): name for n, name in enumerate(labels)}
        options['num_labels'] = len(labels)
    block = initialized(block_class(config, **options), scale, seed)
    block.save_pretrained(str(folder), tokenizer, format=form)
    return block


def save_reader(folder, words, **sizes):
    """Save a random question answering BERT in the hub's form, the same on every machine."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = bert.BertTokenizer(write_words(folder, words))
    config = bert_config(len(tokenizer.vocab), **sizes)
    block, draw = initialized(bert.BertForQuestionAnswering(config)), np.random.RandomState(0)
    for name, parameter in sorted(block._collect_params_with_prefix().items()):
        if not name.endswith(('gamma', 'beta')):
            parameter.set_data(mx.nd.array(draw.normal(0, 0.5, parameter.shape)))
    block.save_pretrained(str(folder), tokenizer, format='huggingface')


def save_gpt2(folder, block_class=gpt2.GPT2LMHeadModel, scale=0.2, **sizes):
    """Save a GPT-2 whose tokens are bytes and ``th`` in a folder; returns the block."""
    tokens = [*bytes_to_unicode().values(), 'th', '<|endoftext|>']
    return _save_decoder(folder, block_class, gpt2.GPT2Tokenizer, tokens, ['t h'], scale, sizes)


def save_gpt(folder, tokens, merges, block_class=gpt.OpenAIGPTLMHeadModel, scale=0.2, **sizes):
    """Save a GPT in a folder; returns the block."""
    return _save_decoder(folder, block_class, gpt.OpenAIGPTTokenizer, tokens, merges, scale, sizes)


def _save_decoder(folder, block_class, tokenizer_class, tokens, merges, scale, sizes):
    folder.mkdir(parents=True, exist_ok=True)
    form = sizes.pop('format', 'native')
    tokenizer = tokenizer_class(*write_pairs(folder, tokens, merges))
    block = make(block_class, len(tokenizer), scale, **sizes)
    block.save_pretrained(str(folder), tokenizer, format=form)
    return block
