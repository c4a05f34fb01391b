"""Runs a script of GluonNLP 0.10 on a small BERT: ``gluonnlp_script.py ours|theirs SCRIPT ARGS``.

The script is as it is. ``$MXNET_HOME`` holds the small model's weights and vocabulary, and the data
sets, by the names that GluonNLP gives them (see `fill_home`). There is no dropout, so that ours and
theirs compute the same.
"""

import hashlib
import os
import pathlib
import random
import runpy
import sys

import model_zoo  # isort: skip  before anything that imports mxnet

import gluonnlp as nlp
import mxnet as mx
import numpy as np
from gluonnlp.data import glue, question_answering
from gluonnlp.model import bert as their_bert
from mxnet.gluon.model_zoo import model_store

from model_zoo.registry import get_family
from model_zoo.zoo import gluonnlp_get_model

SIZES = {'num_layers': 2, 'units': 16, 'hidden_size': 32, 'num_heads': 2, 'max_length': 128}
SIZES.update(embed_size=16, dropout=0.0)
#: the same by our names
OURS = {'num_hidden_layers': 2, 'hidden_size': 16, 'intermediate_size': 32}
OURS.update(num_attention_heads=2, max_position_embeddings=128)
OURS.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
NAME, DATA_SET = 'bert_12_768_12', 'book_corpus_wiki_en_uncased'


def fill_home(home, vocab):
    """Write the vocabulary, and weights of a block of theirs."""
    folder = home / 'models'
    save_vocab(folder, DATA_SET, vocab)
    their_bert.bert_hparams[NAME].update(SIZES)
    block, _ = gluonnlp_get_model(NAME, dataset_name=None, vocab=vocab, pretrained=False)
    mx.random.seed(3)
    block.initialize(mx.init.Normal(0.3))
    ones = mx.nd.ones((1, 4))
    block(ones, ones, mx.nd.ones((1,)), mx.nd.ones((1, 1)))
    made = folder / 'made'
    block.save_parameters(str(made))
    made.rename(folder / f'{NAME}_{DATA_SET}-{_digest(made)[:8]}.params')


def save_vocab(folder, name, vocab):
    """Write a vocabulary as it is in the cache; returns its checksum."""
    folder.mkdir(exist_ok=True)
    made = folder / 'made'
    made.write_text(vocab.to_json())
    digest = _digest(made)
    made.rename(folder / f'{name}-{digest[:8]}.vocab')
    return digest


def _digest(path):
    return hashlib.sha1(path.read_bytes()).hexdigest()


def use_home(home):
    """Let both libraries find what `fill_home` wrote, and data sets of other content."""
    for path in (home / 'models').iterdir():
        stem = path.stem.rpartition('-')[0]
        if path.suffix == '.params':
            model_store._model_sha1[stem] = _digest(path)
        else:
            nlp.data.utils._vocab_sha1[stem] = [_digest(path), '.vocab', {}]
    glue.check_sha1 = question_answering.check_sha1 = lambda *_: True
    their_bert.bert_hparams[NAME].update(SIZES)
    get_family('bert').base.architectures[NAME] = OURS
    mx.gluon.nn.Dropout.hybrid_forward = lambda self, F, x: F.identity(x)


if __name__ == '__main__':
    side, script, *arguments = sys.argv[1:]
    use_home(pathlib.Path(os.environ['MXNET_HOME']))
    if side == 'theirs':
        nlp.model.get_model = gluonnlp_get_model
    else:
        assert nlp.model.get_model is model_zoo.get_model
    random.seed(0)  # run_pretraining.py has no seed
    np.random.seed(0)
    sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(script)
    runpy.run_path(script, run_name='__main__')
