"""Inference beside peers, in turn, as ratios: BERT, its vectors, generation, evaluation.

Ours takes part with every engine and precision that a user can choose. ``--work`` chooses:

``forward``
    BERT base with random weights. As peers, ONNX Runtime and OpenVINO run files that they make of
    transformers' model.
``vectors``
    Sentences of ``--file``, mean and normalized, with the weights of the folder ``--model``, such
    as a copy of all-MiniLM-L6-v2's. All are checked to give the same vectors.
``generation``
    Greedy, by GPT-2 with random weights. In float32 all are checked to write the same tokens.
``words``
    Word vectors of ``--file`` beside GluonNLP 0.10's own recipe (scripts/bert/embedding.py), which
    pads every sentence to ``--max_seq_length`` and merges the word pieces by loops of Python. Both
    run the same random weights, and are checked to give the same vectors.
``perplexity``
    Evaluation of a text by Transformer-XL, with its memory, beside pytorch-pretrained-bert's with
    the same weights; both are checked to measure the same loss. The text has the falling
    frequencies of words (Zipf), which decides how much the adaptive softmax has to do.

``--table`` writes the best times to the file that engine='auto' and README's table are made from,
and ``--readme`` makes that table anew.
"""

import inspect
import itertools
import json
import os
import subprocess
import sys
from argparse import Namespace

from side_by_side import (
    Case,
    Contender,
    add_flags,
    bert_flops,
    measure,
    parse_shapes,
    report,
    rst_table,
    run,
    threads,
    write_between,
)

#: where `--readme` puts the table
BEGIN, END = '.. the table of speed:', '.. end of the table of speed'

VOCAB_SIZE = 30522
HEADS = 12  # of BERT base, and of MiniLM
SEGMENTS = 4  # of a text for Transformer-XL; the memory goes from one to the next


def read_sentences(path, count):
    from model_zoo.errors import InputError

    try:
        with open(path, encoding='utf-8') as file:
            lines = (line.strip() for line in file)
            sentences = list(itertools.islice((line for line in lines if line), count))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f'cannot read {path!r}: {error}') from error
    if not sentences:
        raise InputError(f'{path!r} has no sentences')
    return sentences


def bert_sizes(options):
    """The sizes of a BERT, by the names of our configuration and of transformers'."""
    return {
        'hidden_size': options.units, 'num_hidden_layers': options.layers,
        'num_attention_heads': HEADS, 'intermediate_size': 4 * options.units,
    }  # fmt: skip


def make_batch(vocab_size, shape):
    """Random words, token types and lengths; no position is padding."""
    import numpy as np

    batch, length = shape
    words = np.random.RandomState(0).randint(0, vocab_size, (batch, length))
    return words, np.zeros_like(words), np.full((batch,), length)


def gluonnlp_block(options, vocab=None, **more):
    """GluonNLP's BERTModel with random weights, hybridized."""
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import gluonnlp
    import mxnet as mx

    if vocab is None:
        words = {f'w{index}': 1 for index in range(VOCAB_SIZE - 5)}
        vocab = gluonnlp.vocab.BERTVocab(gluonnlp.data.Counter(words))
    block, _ = gluonnlp.model.get_model(
        'bert_12_768_12', vocab=vocab, pretrained=False, use_decoder=False, use_classifier=False,
        hparam_allow_override=True, num_layers=options.layers, units=options.units,
        embed_size=options.units, hidden_size=4 * options.units, num_heads=HEADS, **more,
    )  # fmt: skip
    block.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True, static_shape=not more)
    return block


def torch_model(options):
    """The model of transformers, of the same size."""
    import torch
    import transformers

    torch.set_num_threads(threads())
    return transformers.BertModel(transformers.BertConfig(**bert_sizes(options))).eval()


def _gluon_forward(block):
    import mxnet as mx

    def prepare(shape):
        batch = make_batch(VOCAB_SIZE, shape)

        def call():
            outputs = block(*(mx.nd.array(array) for array in batch))
            outputs[1].wait_to_read()

        return call

    return prepare


def _cache(options):
    """A folder for what takes long to make, kept between runs with ``--cache``."""
    folder = os.path.abspath(options.cache or options.folder)
    os.environ['MXNET_HOME'] = folder  # where an engine keeps its file
    return folder


def _engine_of(block, engine, precision, make_texts=None):
    """An engine of ours; OpenVINO's INT8 is calibrated."""
    from model_zoo.inference import make_engine

    made = make_engine(block, engine, precision)
    if engine == 'openvino' and precision == 'int8':
        made.run(*make_texts())
    return made


# -- the forward pass ------------------------------------------------------------------------------


def ours_forward(options, engine, precision):
    _cache(options)
    from bert import BertConfig, BertModel  # isort: skip  before MXNet: its libraries
    import mxnet as mx

    block = BertModel(BertConfig(**bert_sizes(options)))
    mx.random.seed(0)
    block.initialize()

    def texts(shape=(16, 64)):
        return [array.astype('int32') for array in make_batch(VOCAB_SIZE, shape)]

    made = _engine_of(block, engine, precision, texts)

    def prepare(shape):
        batch = texts(shape)
        return lambda: made.run(*batch) and None  # the outputs are not to be sent

    return prepare


def gluonnlp(options, precision):
    return _gluon_forward(gluonnlp_block(options))


def transformers(options, precision):
    import torch

    model = torch_model(options)
    if precision == 'int8':
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
    elif precision == 'bfloat16':
        model = model.bfloat16()

    def prepare(shape):
        feed = {name: torch.from_numpy(array) for name, array in _feed(shape).items()}

        def call():
            with torch.inference_mode():
                model(**feed)

        return call

    return prepare


def _feed(shape):
    import numpy as np

    words, types, _ = make_batch(VOCAB_SIZE, shape)
    return {'input_ids': words, 'attention_mask': np.ones_like(words), 'token_type_ids': types}


def _in_own_process(code, *arguments):
    """Run a function of this file where its libraries disturb no one."""
    code = f'import inference, sys; inference.{code}(*sys.argv[1:])'
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, '-c', code, *map(str, arguments)], check=True, cwd=here)


def write_onnx(layers, units, path):
    """Write the model of transformers as an ONNX file."""
    import torch

    model = torch_model(Namespace(layers=int(layers), units=int(units)))
    names = list(_feed((2, 8)))

    class Positional(torch.nn.Module):  # the exporter gives no inputs by their names
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *arrays):
            outputs = self.model(**dict(zip(names, arrays)))
            return outputs.last_hidden_state, outputs.pooler_output

    torch.onnx.export(
        Positional().eval(),
        tuple(map(torch.from_numpy, _feed((2, 8)).values())),
        path,
        input_names=names,
        output_names=['sequence', 'pooled'],
        dynamic_axes={name: {0: 'batch', 1: 'length'} for name in names},
        opset_version=17,
        dynamo=False,
    )


def write_openvino(layers, units, path):
    """Write the model of transformers as OpenVINO's own converter makes it."""
    import openvino
    import torch

    sizes = Namespace(layers=int(layers), units=int(units))
    example = {name: torch.from_numpy(array) for name, array in _feed((2, 8)).items()}
    model = openvino.convert_model(torch_model(sizes), example_input=example)
    openvino.save_model(model, path, compress_to_fp16=False)


def onnxruntime(options, precision):
    import onnxruntime

    path = os.path.join(_cache(options), f'bert-{options.layers}-{options.units}.onnx')
    if not os.path.exists(path):
        _in_own_process('write_onnx', options.layers, options.units, path)
    if precision == 'int8':
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(path, path := os.path.join(options.folder, 'int8.onnx'))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads()
    session = onnxruntime.InferenceSession(path, settings, providers=['CPUExecutionProvider'])

    def prepare(shape):
        feed = _feed(shape)
        return lambda: session.run(None, feed) and None

    return prepare


def openvino(options, precision):
    import openvino

    path = os.path.join(_cache(options), f'transformers-{options.layers}-{options.units}.xml')
    if not os.path.exists(path):
        _in_own_process('write_openvino', options.layers, options.units, path)
    model = openvino.Core().compile_model(path, 'CPU', {
        'INFERENCE_PRECISION_HINT': {'float32': 'f32', 'bfloat16': 'bf16'}[precision],
        'INFERENCE_NUM_THREADS': threads(),
    })  # fmt: skip
    request = model.create_infer_request()

    def prepare(shape):
        feed = _feed(shape)
        return lambda: request.infer(feed, share_inputs=True) and None

    return prepare


# -- sentence vectors ------------------------------------------------------------------------------


def ours_vectors(options, engine, precision):
    _cache(options)
    from bert_embedding import BertEmbedding

    embedding = BertEmbedding(
        model=options.model, max_seq_length=options.max_seq_length, engine=engine, dtype=precision
    )
    sentences = read_sentences(options.file, options.count)
    return lambda count: lambda: embedding.sentence_vectors(
        sentences[:count], 'mean', normalize=True
    )


def sentence_transformers(options, precision):
    import torch
    from sentence_transformers import SentenceTransformer, models

    torch.set_num_threads(threads())
    encoder = models.Transformer(options.model, max_seq_length=options.max_seq_length)
    pooling = models.Pooling(encoder.get_embedding_dimension(), 'mean')
    model = SentenceTransformer(modules=[encoder, pooling, models.Normalize()], device='cpu')
    if precision == 'bfloat16':
        model = model.bfloat16()
    sentences = read_sentences(options.file, options.count)

    def prepare(count):
        return lambda: model.encode(sentences[:count], convert_to_tensor=True).float().numpy()

    return prepare


def _same_vectors(name, vectors, expected):
    """Check the cosines with the first contender's vectors; each precision has its own bound."""
    import numpy as np

    from model_zoo.errors import InputError

    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    least = np.min(np.sum(np.multiply(vectors, expected), axis=1))
    print(f'{name}: cosine with the first at least {least:.6f}', flush=True)
    bounds = {'float32': 0.99999, 'bfloat16': 0.999, 'int8': 0.9}
    if least < next(bound for precision, bound in bounds.items() if precision in name):
        raise InputError(f'{name} has other vectors than the first')


# -- generation ------------------------------------------------------------------------------------


def _prompts(shape, vocab_size):
    import numpy as np

    return np.random.RandomState(0).randint(0, vocab_size, shape)


def _gpt2_folder(options):
    """The folder of GPT-2, which all contenders read; the first one writes it."""
    folder = os.path.join(_cache(options), f'gpt2-{options.layers}')
    if not os.path.isfile(os.path.join(folder, 'config.json')):
        from gpt2 import GPT2Config, GPT2LMHeadModel  # isort: skip  before MXNet: its libraries
        import mxnet as mx

        block = GPT2LMHeadModel(GPT2Config(n_layer=options.layers))
        mx.random.seed(0)
        block.initialize()
        block.save_pretrained(folder, format='huggingface')
    return folder


def ours_generation(options, engine, precision):
    folder = _gpt2_folder(options)
    from gpt2 import GPT2LMHeadModel
    from model_zoo.generation import generate

    block = GPT2LMHeadModel.from_pretrained(folder)
    made = _engine_of(block, engine, precision)
    if engine == 'mxnet':
        block.hybridize(static_alloc=True, static_shape=True)

    def prepare(shape):
        prompts = _prompts(shape, block.config.vocab_size)
        return lambda: [
            text.tokens for (text,) in generate(made.language_model, prompts, options.new_tokens)
        ]

    return prepare


def transformers_generation(options, precision):
    import torch
    import transformers

    torch.set_num_threads(threads())
    model = transformers.GPT2LMHeadModel.from_pretrained(_gpt2_folder(options)).eval()
    if precision == 'bfloat16':
        model = model.bfloat16()
    model.generation_config.eos_token_id = None  # ours too writes on behind an end of text

    def prepare(shape):
        words = torch.from_numpy(_prompts(shape, model.config.vocab_size))

        def call():
            with torch.inference_mode():
                result = model.generate(
                    words,
                    attention_mask=torch.ones_like(words),
                    max_new_tokens=options.new_tokens,
                    do_sample=False,
                    pad_token_id=0,
                )
            return result[:, words.shape[1] :].tolist()

        return call

    return prepare


def write_ctranslate2(source, target, precision):
    """Convert GPT-2 as CTranslate2's own converter does, but for the tokenizer."""
    import ctranslate2

    class Converter(ctranslate2.converters.TransformersConverter):
        def load_tokenizer(self, tokenizer_class, model_name_or_path, **kwargs):
            return None

    loader = type(ctranslate2.converters.transformers._MODEL_LOADERS['GPT2Config'])
    loader.get_vocabulary = lambda self, model, tokenizer: [
        f't{n}' for n in range(model.config.vocab_size)
    ]
    loader.set_vocabulary = lambda self, spec, tokens: spec.register_vocabulary(tokens)
    loader.set_config = lambda self, config, model, tokenizer: None
    Converter(source).convert(target, quantization=precision, force=True)


def ctranslate2(options, precision):
    source = _gpt2_folder(options)
    target = f'{source}-ctranslate2-{precision}'
    if not os.path.isdir(target):
        _in_own_process('write_ctranslate2', source, target, precision)
    import ctranslate2

    model = ctranslate2.Generator(
        target, compute_type=precision, inter_threads=1, intra_threads=threads()
    )
    with open(os.path.join(source, 'config.json'), encoding='utf-8') as file:
        vocab_size = json.load(file)['vocab_size']

    def prepare(shape):
        prompts = [[f't{id_}' for id_ in row] for row in _prompts(shape, vocab_size)]

        def call():
            results = model.generate_batch(
                prompts, max_length=options.new_tokens, min_length=options.new_tokens,
                sampling_topk=1, include_prompt_in_result=False,
            )  # fmt: skip
            return [result.sequences_ids[0] for result in results]

        return call

    return prepare


def _same_tokens(name, tokens, expected):
    from model_zoo.errors import InputError

    if 'float32' in name and tokens != expected:
        raise InputError(f'{name} wrote other tokens than ours')


# -- word vectors ----------------------------------------------------------------------------------


def ours_words(options):
    from bert_embedding import BertEmbedding

    if not os.path.isfile(os.path.join(options.folder, 'config.json')):  # the first contender
        _write_model(options)
    embedding = BertEmbedding(
        model=options.folder, max_seq_length=options.max_seq_length, batch_size=options.batch_size
    )
    sentences = read_sentences(options.file, options.count)
    return lambda count: lambda: embedding(sentences)


def _write_model(options):
    """A new model in `options.folder`, for GluonNLP as well."""
    from bert import BertConfig, BertModel, BertTokenizer

    tokenizer = BertTokenizer(options.vocab)
    config = BertConfig(vocab_size=len(tokenizer), **bert_sizes(options))
    block = BertModel(config, use_pooler=False)
    block.initialize()
    block.save_pretrained(options.folder, tokenizer)
    block.save_parameters(os.path.join(options.folder, 'gluonnlp.params'), format='gluonnlp')
    with open(os.path.join(options.folder, 'gluonnlp.json'), 'w', encoding='utf-8') as file:
        file.write(tokenizer.vocab.to_json())


def gluonnlp_words(options):
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import gluonnlp as nlp
    import mxnet as mx

    with open(os.path.join(options.folder, 'gluonnlp.json'), encoding='utf-8') as file:
        vocab = nlp.vocab.BERTVocab.from_json(file.read())
    model = gluonnlp_block(options, vocab, use_pooler=False)
    model.load_parameters(os.path.join(options.folder, 'gluonnlp.params'))
    sentences = read_sentences(options.file, options.count)
    transform = nlp.data.BERTSentenceTransform(
        nlp.data.BERTTokenizer(vocab, lower=True),
        max_seq_length=options.max_seq_length,
        pair=False,
    )
    skipped = {vocab[vocab.cls_token], vocab[vocab.sep_token]}
    padding = vocab[vocab.padding_token]

    def merge(ids, states):
        tokens, vectors, count = [], [], 1
        for token_id, state in zip(ids, states):
            if token_id == padding:
                break
            if token_id in skipped:
                continue
            token = vocab.idx_to_token[token_id]
            if token.startswith('##'):
                tokens[-1] += token[2:]
                vectors[-1] += state
                count += 1
                continue
            if count > 1:
                vectors[-1] /= count
                count = 1
            tokens.append(token)
            vectors.append(state)
        if count > 1:
            vectors[-1] /= count
        return tokens, vectors

    def embed():
        dataset = mx.gluon.data.SimpleDataset([[text] for text in sentences])
        loader = mx.gluon.data.DataLoader(dataset.transform(transform), options.batch_size)
        results = []
        for ids, lengths, types in loader:
            states = model(ids, types, lengths.astype('float32'))
            for row in zip(ids.asnumpy(), states.asnumpy()):
                results.append(merge(*row))
        return results

    return lambda count: embed


def _same_words(name, results, expected):
    import numpy as np

    from model_zoo.errors import InputError

    greatest = 0
    for (tokens, vectors), (expected_tokens, expected_vectors) in zip(results, expected):
        if list(tokens) != list(expected_tokens):
            raise InputError(f'{name} has other words: {tokens} rather than {expected_tokens}')
        if tokens:
            greatest = max(greatest, np.abs(np.subtract(vectors, expected_vectors)).max())
    print(f'{name}: vectors differ from ours by {greatest:.1e} at most', flush=True)


# -- evaluation of a text --------------------------------------------------------------------------


def draw_text(vocab_size, batch, length):
    """SEGMENTS pairs of words and labels, (batch, length) each."""
    import numpy as np

    frequencies = 1 / np.arange(1, vocab_size + 1)
    words = np.random.RandomState(0).choice(
        vocab_size, (batch, SEGMENTS * length + 1), p=frequencies / frequencies.sum()
    )
    starts = range(0, SEGMENTS * length, length)
    return [
        (words[:, i : i + length].copy(), words[:, i + 1 : i + length + 1].copy()) for i in starts
    ]


def transfo_xl_sizes(options):
    """The model's sizes, by the names of its configuration's fields."""
    return {
        'vocab_size': options.vocab_size, 'n_layer': options.layers, 'tgt_len': options.tgt_len,
        'mem_len': options.mem_len, 'clamp_len': options.mem_len + options.tgt_len,
    }  # fmt: skip


def original_config(values):
    """The configuration of pytorch-pretrained-bert, with those of the values that it knows."""
    import pytorch_pretrained_bert as original

    known = inspect.signature(original.TransfoXLConfig).parameters
    fields = {name: value for name, value in values.items() if name in known}
    return original.TransfoXLConfig(values['vocab_size'], **fields)


def ours_perplexity(options):
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import mxnet as mx

    from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

    if not os.path.isfile(os.path.join(options.folder, 'config.json')):  # the first contender
        block = TransfoXLLMHeadModel(TransfoXLConfig(**transfo_xl_sizes(options)))
        block.initialize()
        block.save_pretrained(options.folder, format='pytorch')
    block = TransfoXLLMHeadModel.from_pretrained(options.folder)
    block.hybridize(static_alloc=True, static_shape=True)

    def prepare(shape):
        text = draw_text(options.vocab_size, *shape)

        def call():
            state, total = None, 0
            for words, labels in text:
                words, labels = (mx.nd.array(array, dtype='int32') for array in (words, labels))
                losses, state = block.read(words, labels, state)
                total += losses.mean()
            return total.asscalar() / SEGMENTS

        return call

    return prepare


def original_perplexity(options):
    import pytorch_pretrained_bert as original
    import torch

    torch.set_num_threads(threads())
    torch.Tensor.byte = torch.Tensor.bool  # the type of masks that today's torch wants
    with open(os.path.join(options.folder, 'config.json'), encoding='utf-8') as file:
        model = original.TransfoXLLMHeadModel(original_config(json.load(file))).eval()
    weights = torch.load(os.path.join(options.folder, 'pytorch_model.bin'))
    model.load_state_dict(weights, False)
    model.tie_weights()

    def prepare(shape):
        text = draw_text(options.vocab_size, *shape)

        def call():
            mems, total = None, 0
            with torch.inference_mode():
                for words, labels in text:
                    losses, mems = model(torch.from_numpy(words), torch.from_numpy(labels), mems)
                    total += losses.mean()
            return total.item() / SEGMENTS

        return call

    return prepare


def _same_loss(name, loss, expected):
    from model_zoo.errors import InputError

    if abs(loss - expected) > 1e-3:
        raise InputError(f'{name} has the loss {loss}, and ours is {expected}')


# -- the choice, and the table ---------------------------------------------------------------------

_ONNX, _OPENVINO = ('onnx', 'onnxruntime'), ('onnx', 'onnxruntime', 'openvino')
#: engine -> what it needs, and its precisions
ENGINES = {
    'mxnet': ((), ('float32', 'bfloat16')),
    'onnxruntime': (_ONNX, ('float32', 'int8')),
    'openvino': (_OPENVINO, ('float32', 'bfloat16', 'int8')),
}
_TORCH = ('torch', 'transformers')
#: work -> our function, a comparison, and peers: name, function, needs, precisions; without
#: precisions it is in float32, and ours has no other engine
WORKS = {
    'forward': (ours_forward, None, (
        ('gluonnlp', gluonnlp, ('gluonnlp',), ('float32',)),
        ('torch', transformers, _TORCH, ('float32', 'bfloat16', 'int8')),
        ('onnxruntime', onnxruntime, (*_TORCH, *_ONNX), ('float32', 'int8')),
        ('openvino', openvino, (*_TORCH, 'openvino'), ('float32', 'bfloat16')),
    )),
    'vectors': (ours_vectors, _same_vectors, (
        ('sentence-transformers', sentence_transformers, ('torch', 'sentence_transformers'),
         ('float32', 'bfloat16')),
    )),
    'generation': (ours_generation, _same_tokens, (
        ('torch', transformers_generation, _TORCH, ('float32', 'bfloat16')),
        ('ctranslate2', ctranslate2, (*_TORCH, 'ctranslate2'), ('float32', 'int8')),
    )),
    'words': (ours_words, _same_words, (('gluonnlp', gluonnlp_words, ('gluonnlp',), None),)),
    'perplexity': (ours_perplexity, _same_loss, (
        ('pytorch-pretrained-bert', original_perplexity, ('torch', 'pytorch_pretrained_bert'),
         None),
    )),
}  # fmt: skip

#: batch x length, where it isn't BERT's forward pass
SHAPES = {'generation': '1x32,8x32', 'perplexity': '1x128,8x128'}


def contenders(work, precisions, only=()):
    """Our contenders and the peers, or those that have one of the texts `only` in their names."""
    make, _, peers = WORKS[work]
    if peers[0][-1] is None:
        return [Contender('ours', make)], [Contender(*peer[:-1]) for peer in peers]
    ours = [
        Contender(
            f'ours, {engine} {precision}', make, needs, {'engine': engine, 'precision': precision}
        )
        for precision in precisions
        for engine, (needs, known) in ENGINES.items()
        if precision in known and (work, engine, precision) != ('generation', 'openvino', 'int8')
    ]
    theirs = [
        Contender(f'{name} {precision}', function, needs, {'precision': precision})
        for precision in precisions
        for name, function, needs, known in peers
        if precision in known
    ]
    return tuple(
        [item for item in side if not only or any(text in item.name for text in only)]
        for side in (ours, theirs)
    )


def record(path, work, measured):
    """Write the best times, in milliseconds, to the table of this kind of processor."""
    from model_zoo.inference.engines import processor
    from model_zoo.util.files import write_json

    with open(path, encoding='utf-8') as file:
        content = json.load(file)
    table = content['processors'].setdefault(processor(), {})
    for result in measured:
        side = 'ours' if result.contender.startswith('ours') else 'peers'
        rows = table.setdefault(side, {}).setdefault(work, {})
        row = rows.setdefault(result.case.label, {})
        row[result.contender.replace('ours, ', '')] = round(1e3 * min(result.seconds), 1)
    write_json(path, content)


def speed_lines(table):
    """README's table, in milliseconds, of the figures of one kind of processor."""
    columns = [(work, case) for work in WORKS for case in table['ours'].get(work, {})]
    titles = {'forward': '{}', 'vectors': '{} vectors', 'generation': 'GPT-2 {}'}
    head = ['', *(titles[work].format(case) for work, case in columns)]
    rows = []
    for precision in ('float32', 'bfloat16', 'int8'):
        names = [f'{engine} {precision}' for engine in ENGINES if precision in ENGINES[engine][1]]
        for name in names:
            cells = [table['ours'][work][case].get(name) for work, case in columns]
            rows.append([name, *('' if ms is None else f'{ms:.1f}' for ms in cells)])
        cells = []
        for work, case in columns:
            peers = table['peers'].get(work, {}).get(case, {})
            peers = {name: ms for name, ms in peers.items() if name.endswith(precision)}
            best = min(peers, key=peers.get, default=None)
            cells.append('' if best is None else f'{peers[best]:.1f} ({best.split()[0]})')
        rows.append([f'best peer, {precision}', *cells])
    return rst_table(head, [row for row in rows if any(row[1:])])


def main(argv=None):
    parser = add_flags(__doc__.split('\n')[0], seconds=40)
    add = parser.add_argument
    add('--work', default='forward', choices=WORKS)
    add('--precision', nargs='+', default=['float32'], choices=['float32', 'bfloat16', 'int8'])
    add('--only', nargs='+', default=(), metavar='TEXT', help='contenders whose names have it')
    add('--shapes', help='batch x length; of prompts with --work generation')
    add('--layers', type=int, help='default: 12; 6 with --work words and perplexity')
    add('--units', type=int, help='of BERT; default: 768, and 384 with --work words')
    add('--new_tokens', type=int, default=128, help='of --work generation')
    add('--file', help='of --work vectors and words: one sentence per line, in UTF-8')
    add('--vocab', help='of --work words: vocab.txt of an uncased BERT')
    add('--model', help='of --work vectors: folder with weights and vocab.txt')
    add('--count', type=int, default=400, help='how many of the sentences')
    add('--max_seq_length', type=int, help='default: 256 of vectors, 128 of words')
    add('--batch_size', type=int, default=256, help='of --work words')
    add('--mem_len', type=int, default=160, help='positions that Transformer-XL remembers')
    add('--vocab_size', type=int, default=267735, help="Transformer-XL's; here wikitext-103's")
    add('--cache', metavar='DIR', help='keep what takes long to make here for later runs')
    add('--table', metavar='FILE', help='add the best times to this file of figures')
    add('--readme', metavar='FILE', help='page whose table is rewritten from the file of figures')
    args = parser.parse_args(argv)
    is_small = args.work in ('words', 'perplexity')
    args.layers = args.layers or (6 if is_small else 12)
    args.units = args.units or (384 if args.work == 'words' else 768)
    args.max_seq_length = args.max_seq_length or (128 if args.work == 'words' else 256)
    shapes = args.shapes or SHAPES.get(args.work, '1x32,1x128,8x128,32x128')
    shapes = parse_shapes(shapes)
    args.tgt_len = max(length for _, length in shapes)
    cases, unit = [], {'forward': 'GF/s'}.get(args.work, 'tokens/s')
    for batch, length in shapes:
        work = {
            'forward': bert_flops(args.layers, args.units, batch, length),
            'perplexity': batch * length * SEGMENTS,
        }.get(args.work, batch * args.new_tokens)
        cases.append(Case(f'{batch}x{length}', (batch, length), work))
    if args.work in ('vectors', 'words'):
        args.count = len(read_sentences(args.file, args.count))
        cases, unit = [Case(str(args.count), args.count, args.count)], 'sentences/s'
    # a call of generation or of words takes seconds: the one that gave the answer has warmed it up
    sides = contenders(args.work, args.precision, args.only)
    measured = measure(
        *sides, cases, args, args.work not in ('generation', 'words'), WORKS[args.work][1]
    )
    report(f'{args.work}, {", ".join(args.precision)}', measured, args, unit)
    if args.table:
        own = {contender.name for side in sides for contender in side}  # not of other checkouts
        record(args.table, args.work, [each for each in measured if each.contender in own])
    if args.readme:
        from model_zoo.inference.engines import SPEED_FILE, processor
        from model_zoo.util.reading import read_json

        table = read_json(args.table or SPEED_FILE)['processors'][processor()]
        write_between(args.readme, BEGIN, END, speed_lines(table))


if __name__ == '__main__':
    run(main)
