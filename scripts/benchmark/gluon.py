"""Contenders on MXNet: this project, and GluonNLP."""

import functools
import os

import model_zoo  # noqa: F401  isort: skip  before MXNet
import mxnet as mx
from inputs import VOCAB_SIZE, bert_sizes, labels, make_batch, prompts, read_sentences

ADAM = {'learning_rate': 2e-5, 'wd': 0.01}


def _bert_inputs(shape):
    return [array.astype('int32') for array in make_batch(shape)]


def _engine(options, block, engine, precision):
    """Return an engine of this project."""
    from model_zoo.inference import make_engine

    os.environ['MXNET_HOME'] = options.folder  # where it keeps its file
    return make_engine(block, engine, precision)


def forward(options, engine, precision):
    """Run BERT with random weights, or another family's encoder from transformers."""
    from bert import BertConfig, BertModel
    from model_zoo import open_model

    if options.family == 'bert':
        block = BertModel(BertConfig(**bert_sizes(options)))
        mx.random.seed(0)
        block.initialize()
    else:
        block = open_model(options.encoder, tokenizer=False).block
    made = _engine(options, block, engine, precision)

    def prepare(shape):
        batch = _bert_inputs(shape)
        return lambda: made.run(*batch) and None  # the outputs needn't be sent

    return prepare


def vectors(options, engine, precision):
    """Compute sentence vectors."""
    from bert_embedding import BertEmbedding

    os.environ['MXNET_HOME'] = options.folder
    embedding = BertEmbedding(
        model=options.model, max_seq_length=options.max_len, engine=engine, dtype=precision
    )
    sentences = read_sentences(options)
    return lambda count: (
        lambda: embedding.sentence_vectors(sentences[:count], 'mean', normalize=True)
    )


def write_gpt2(options):
    """Write the GPT-2 with random weights that all contenders open."""
    from gpt2 import GPT2Config, GPT2LMHeadModel

    block = GPT2LMHeadModel(GPT2Config(options.vocab_size, n_layer=options.layers))
    mx.random.seed(0)
    block.initialize()
    block.save_pretrained(options.gpt2, format='huggingface')


def generation(options, engine, precision):
    """Generate greedily with GPT-2."""
    from gpt2 import GPT2LMHeadModel
    from model_zoo.generation import generate

    block = GPT2LMHeadModel.from_pretrained(options.gpt2)
    made = _engine(options, block, engine, precision)
    if engine == 'mxnet':
        block.hybridize(static_alloc=True, static_shape=True)

    def prepare(shape):
        words = prompts(shape, block.config.vocab_size)
        run = functools.partial(generate, made.language_model, max_new_tokens=options.new_tokens)
        return lambda: [text.tokens for (text,) in run(words)]

    return prepare


def write_classifier(options):
    """Write a classifier with an untrained head, as transformers reads it."""
    from model_zoo import open_model

    mx.random.seed(0)
    block, tokenizer = open_model(options.model, 'classification', num_labels=2)[:2]
    block.save_pretrained(options.classifier, tokenizer, format='huggingface')


def training(options, precision, operators):
    """Train a step as this project's scripts do; `operators` is ``ZOO_OPERATORS``."""
    os.environ['ZOO_OPERATORS'] = operators
    from bert import BertConfig, BertForSequenceClassification
    from model_zoo.training import Updater, Workers

    block = BertForSequenceClassification(BertConfig(**bert_sizes(options)))
    block.initialize()
    block.cast(precision)
    block.hybridize(static_alloc=True)
    optimizer = {**ADAM, 'multi_precision': precision == 'float16'}
    parameters = block.collect_params()
    trainer = mx.gluon.Trainer(parameters, 'bertadam', optimizer, update_on_kvstore=False)
    updater, workers = Updater(block, trainer), Workers()

    def prepare(shape):
        batch = [mx.nd.array(array) for array in (*make_batch(shape), labels(shape))]
        return _step(lambda: block(*batch), lambda: updater.update(1, workers))

    return prepare


def _step(compute, update):
    """Return a step that waits for its end; `compute` returns the loss."""

    def step():
        with mx.autograd.record():
            loss = compute()
        loss.backward()
        update()
        mx.nd.waitall()

    return step


def _gluonnlp_block(options):
    import gluonnlp

    words = gluonnlp.data.Counter({f'w{index}': 1 for index in range(VOCAB_SIZE - 5)})
    sizes = {'num_layers': options.layers, 'hidden_size': 4 * options.units, 'num_heads': 12}
    sizes.update(dict.fromkeys(['units', 'embed_size'], options.units))
    parts = dict.fromkeys(['pretrained', 'use_decoder', 'use_classifier'], False)
    vocab = gluonnlp.vocab.BERTVocab(words)
    block, _ = gluonnlp.model.get_model(
        'bert_12_768_12', vocab=vocab, hparam_allow_override=True, **sizes, **parts
    )
    block.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True)
    return block


def gluonnlp_forward(options, precision):
    """Run GluonNLP's BERT."""
    block = _gluonnlp_block(options)

    def prepare(shape):
        batch = make_batch(shape)
        return lambda: block(*map(mx.nd.array, batch))[1].wait_to_read()

    return prepare


def gluonnlp_training(options, precision):
    """Train a step as GluonNLP's script does."""
    import gluonnlp

    block = gluonnlp.model.BERTClassifier(_gluonnlp_block(options), dropout=0.1)
    block.classifier.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True)
    criterion = mx.gluon.loss.SoftmaxCELoss()
    criterion.hybridize(static_alloc=True)
    parameters = block.collect_params()
    adam = gluonnlp.optimizer.BERTAdam(**ADAM)
    trainer = mx.gluon.Trainer(parameters, adam, update_on_kvstore=False)
    trained = [parameter for parameter in parameters.values() if parameter.grad_req != 'null']

    def update():
        trainer.allreduce_grads()
        gluonnlp.utils.clip_grad_global_norm(trained, 1)
        trainer.update(1)

    def prepare(shape):
        words, types, length, right = map(mx.nd.array, (*make_batch(shape), labels(shape)))
        return _step(lambda: criterion(block(words, types, length), right).mean(), update)

    return prepare
