"""GluonNLP's blocks and ours: parameters go both ways, and its code runs on our blocks."""

import functools
import itertools

import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, text_inputs
from gluonnlp_models import SIZES, assert_both_ways, encoder, randomize
from refusals import refuses

import bert
from model_zoo.errors import CheckpointError
from model_zoo.tokenization.vocab import load_vocab

CONFIG = bert.BertConfig(40, **SIZES)
ROBERTA = bert.RobertaConfig(40, **{**SIZES, 'max_position_embeddings': 22})
make_inputs = functools.partial(text_inputs, dtype='float32')
PARTS = [  # pooler, decoder, classifier
    flags for flags in itertools.product([False, True], repeat=3) if flags[0] or not flags[2]
]
WORDS = ['the', 'cat', 'sat', 'on', 'mat', '.', 'hello', 'world', '!', '##s', 'play', '##ing']
VOCAB = [*tiny.SPECIAL, *WORDS]


def their_model(pooler=True, decoder=False, classifier=False, **options):
    parts = {'use_pooler': pooler, 'use_decoder': decoder, 'use_classifier': classifier}
    sizes = {'vocab_size': 40, 'token_type_vocab_size': 2, 'units': 16, 'embed_size': 16}
    return nlp.model.BERTModel(encoder(**options), **sizes, **parts)


def our_model(pooler=True, decoder=False, classifier=False, **options):
    return bert.BertModel(
        CONFIG, use_pooler=pooler, use_decoder=decoder, use_classifier=classifier, **options
    )


def their_classifier(dropout=0.1):
    return nlp.model.BERTClassifier(their_model(), num_classes=3, dropout=dropout)


def our_classifier(**options):
    return bert.BertForSequenceClassification(CONFIG, num_labels=3, **options)


class TheirQA(mx.gluon.HybridBlock):
    """With the attributes of BertForQA in GluonNLP's scripts/bert/model/qa.py."""

    def __init__(self):
        super().__init__()
        self.bert = their_model(False)
        with self.name_scope():
            self.span_classifier = mx.gluon.nn.Dense(2, flatten=False)

    def hybrid_forward(self, F, words, types, valid=None):
        scores = self.span_classifier(self.bert(words, types, valid))
        return F.split(scores, num_outputs=2, axis=2, squeeze_axis=True)


def their_roberta(decoder):
    sizes = {'units': 16, 'embed_size': 16, 'use_decoder': decoder}
    return nlp.model.RoBERTaModel(encoder(layer_norm_eps=1e-5), vocab_size=40, **sizes)


def our_roberta(decoder):
    return bert.RobertaModel(ROBERTA, use_pooler=False, use_decoder=decoder)


def their_roberta_classifier(dropout):
    return nlp.model.RoBERTaClassifier(their_roberta(False), num_classes=3, dropout=dropout)


def our_roberta_classifier(dropout):
    return bert.RobertaForSequenceClassification(ROBERTA, num_labels=3, dropout=dropout)


def their_distilbert():
    sizes = {'vocab_size': 40, 'units': 16, 'embed_size': 16}
    return nlp.model.DistilBERTModel(encoder(layer_norm_eps=1e-5), **sizes)


def our_distilbert():
    sizes = {'n_heads': 4, 'hidden_dim': 512, 'max_position_embeddings': 20}
    config = tiny.make_config(bert.DistilBertConfig, **sizes, layer_norm_eps=1e-5)
    return bert.DistilBertModel(config)


#: their block, ours, and arguments of both
BOTH_WAYS = [
    *((their_model, our_model, parts) for parts in PARTS),
    (TheirQA, lambda: bert.BertForQuestionAnswering(CONFIG), ()),
    *((their_roberta, our_roberta, (decoder,)) for decoder in (False, True)),
    *((their_roberta_classifier, our_roberta_classifier, (rate,)) for rate in (0.0, 0.1)),
    (their_distilbert, our_distilbert, ()),
]


@pytest.mark.parametrize('theirs, ours, arguments', BOTH_WAYS)
def test_both_ways(tmp_path, theirs, ours, arguments):
    make, block = functools.partial(theirs, *arguments), ours(*arguments)
    words, types, valid, positions = make_inputs()
    more = [positions] if getattr(block, 'has_decoder', False) else []
    inputs = [words, *([] if 'token_types' in block.unused_inputs else [types]), valid, *more]
    own = [words, None, valid] if block.backbone and len(inputs) == 2 else inputs
    assert_both_ways(tmp_path, make, lambda: block, inputs, own)


@pytest.mark.parametrize('dropout, our_dropout', [(0.0, 0.1), (0.1, 0.0)])
def test_classifier_both_ways(tmp_path, dropout, our_dropout):
    """The classifier has another number in their file with and without dropout."""
    assert_both_ways(
        tmp_path,
        lambda: their_classifier(dropout),
        lambda: our_classifier(dropout=our_dropout),
        make_inputs()[:3],
        back=lambda: their_classifier(our_dropout),
    )


def test_backbone_of_a_task_and_a_task_on_a_backbone(tmp_path):
    inputs = make_inputs()[:3]
    path = str(tmp_path / 'model.params')
    theirs = randomize(their_classifier(), *inputs)
    theirs.save_parameters(path)
    ours = our_model()
    with pytest.raises(CheckpointError):
        ours.load_parameters(path)
    ours.load_parameters(path, ignore_extra=True)
    assert_same(ours(*inputs), theirs.bert(*inputs))

    theirs.bert.save_parameters(path)
    head = our_classifier()
    with pytest.raises(CheckpointError):
        head.load_parameters(path)
    head.initialize()
    before = head.classifier.weight.data().asnumpy()
    head.load_parameters(path, allow_missing=True)
    assert_same(head.bert(*inputs), theirs.bert(*inputs))
    np.testing.assert_array_equal(head.classifier.weight.data().asnumpy(), before)


MODELS = [
    (nlp.model.BERTClassifier, lambda: (their_model(True, True), our_model(True, True))),
    (nlp.model.BERTClassifier, lambda: (their_model(), our_model())),
    (nlp.model.RoBERTaClassifier, lambda: (their_roberta(False), our_roberta(False))),
]


@pytest.mark.parametrize('deduplicate', [False, True])
@pytest.mark.parametrize('task, models', MODELS)
def test_files_of_their_classifier_on_our_model(tmp_path, task, models, deduplicate):
    """Within a block of theirs our parameters have their names, and each its own."""
    theirs, ours = models()
    words, types, valid, positions = make_inputs()
    inputs = [words, valid] if task is nlp.model.RoBERTaClassifier else [words, types, valid]
    randomize(theirs, *inputs, *([positions] if ours.has_decoder else []))
    first, second, third = (task(model, dropout=0.1) for model in (theirs, ours, models()[0]))
    first.classifier.initialize()
    first.classifier(mx.nd.ones((1, 16)))
    paths = [str(tmp_path / name) for name in ('first.params', 'second.params')]
    first.save_parameters(paths[0], deduplicate=deduplicate)
    nlp.utils.load_parameters(second, paths[0])
    nlp.utils.save_parameters(second, paths[1])
    third.load_parameters(paths[1])
    names = [mx.nd.load(path) for path in paths]
    assert deduplicate or names[0].keys() == names[1].keys()
    if not ours.has_decoder:
        assert_same(second(*inputs), first(*inputs))
    values = zip(first.collect_params().values(), third.collect_params().values())
    assert all((one.data() == other.data()).asnumpy().all() for one, other in values)


@pytest.mark.parametrize('name', ['bert_12_768_12', 'roberta_12_768_12', 'distilbert_6_768_12'])
def test_their_options_at_their_values(name):
    sizes = {'num_layers': 1, 'units': 16, 'hidden_size': 32, 'num_heads': 2}
    parts = {'use_classifier': False, 'use_decoder': False}
    options = {'vocab': load_vocab(VOCAB), 'pretrained': False, **sizes, **parts}
    build = functools.partial(nlp.model.get_model, name, hparam_allow_override=True, **options)
    usual = {'embed_dropout': 0.1, 'use_residual': True, 'word_embed': None, 'scaled': True}
    usual.update(use_token_type_embed=True, attention_cell='multi_head')
    block, _ = build(**usual)
    assert not block.has_decoder and not block.has_classifier
    for name in usual.keys() - {'embed_dropout'}:
        with refuses(says=name):
            build(**{name: not usual[name]})


def test_attentions_and_all_layers_are_theirs(tmp_path):
    theirs = their_model(output_attention=True, output_all_encodings=True)
    inputs = make_inputs()[:3]
    randomize(theirs, *inputs).save_parameters(str(tmp_path / 'model.params'))
    ours = our_model(output_attentions=True, output_all_encodings=True)
    ours.load_parameters(str(tmp_path / 'model.params'))
    assert_same(ours(*inputs), theirs(*inputs))


def test_snippet_of_their_documentation(tmp_path, monkeypatch):
    """The lines of GluonNLP's scripts/bert/index.rst, on weights in the cache."""
    monkeypatch.setenv('MXNET_HOME', str(tmp_path))
    name = 'bert_12_768_12_book_corpus_wiki_en_uncased'
    saved = tiny.save_bert(tmp_path / 'models' / name, WORDS)

    parts = {'use_classifier': False, 'use_decoder': False}
    dataset_name = 'book_corpus_wiki_en_uncased'
    model, vocab = nlp.model.get_model('bert_12_768_12', dataset_name=dataset_name, **parts)
    tokenizer = nlp.data.BERTTokenizer(vocab, lower=True)
    transform = nlp.data.BERTSentenceTransform(tokenizer, max_seq_length=512, pair=False, pad=False)
    sample = transform(['Hello world!'])
    words = mx.nd.array([sample[0]])
    valid_len = mx.nd.array([sample[1]])
    segments = mx.nd.array([sample[2]])
    seq_encoding, cls_encoding = model(words, segments, valid_len)

    assert type(model) is bert.BertModel
    tokens = '[CLS]', 'hello', 'world', '!', '[SEP]'
    assert sample[0].tolist() == [VOCAB.index(token) for token in tokens]
    assert seq_encoding.shape == (1, 5, 16) and cls_encoding.shape == (1, 16)
    assert_same([seq_encoding, cls_encoding], saved(words, segments, valid_len))
