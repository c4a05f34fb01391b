"""Inference beside peers, in turn, as ratios: BERT's forward pass, sentence vectors, generation.

Ours is there with every engine and precision that a user can choose. ``--work`` chooses:

``forward``
    BERT base with random weights. Of peers, ONNX Runtime and OpenVINO run what they make of
    transformers' model.
``vectors``
    Sentences of ``--file``, mean and normalized, with the weights of the folder ``--model``, such
    as a copy of all-MiniLM-L6-v2's. All are checked to give the same vectors.
``generation``
    Greedy, by GPT-2 with random weights. In float32 all are checked to write the same tokens.

``--table`` writes the best times to the file that engine='auto' and README's table are made from,
and ``--readme`` makes that table anew.
"""

import json
import os
import subprocess
import sys

from embedding import read_sentences
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


def make_batch(vocab_size, shape):
    """Random words, token types and lengths; no position is padding."""
    import numpy as np

    batch, length = shape
    words = np.random.RandomState(0).randint(0, vocab_size, (batch, length))
    return words, np.zeros_like(words), np.full((batch,), length)


def gluonnlp_block(layers):
    """GluonNLP's BERTModel of BERT base's size, with random weights, hybridized."""
    import gluonnlp
    import mxnet as mx

    words = {f'w{index}': 1 for index in range(VOCAB_SIZE - 5)}
    vocab = gluonnlp.vocab.BERTVocab(gluonnlp.data.Counter(words))
    block, _ = gluonnlp.model.get_model(
        'bert_12_768_12',
        vocab=vocab,
        pretrained=False,
        use_decoder=False,
        use_classifier=False,
        hparam_allow_override=True,
        num_layers=layers,
    )
    block.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True, static_shape=True)
    return block


def torch_model(layers):
    """The model of transformers, of the same size."""
    import torch
    import transformers

    torch.set_num_threads(threads())
    config = transformers.BertConfig(num_hidden_layers=layers)
    return transformers.BertModel(config).eval()


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

    block = BertModel(BertConfig(num_hidden_layers=options.layers))
    mx.random.seed(0)
    block.initialize()

    def texts(shape=(16, 64)):
        return [array.astype('int32') for array in make_batch(VOCAB_SIZE, shape)]

    made = _engine_of(block, engine, precision, texts)

    def prepare(shape):
        batch = texts(shape)
        return lambda: made.run(*batch) and None  # the outputs are not to be sent

    return prepare


def gluonnlp(options):
    return _gluon_forward(gluonnlp_block(options.layers))


def transformers(options, precision):
    import torch

    model = torch_model(options.layers)
    if precision == 'int8':
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
    elif precision == 'bfloat16':
        model = model.bfloat16()

    def prepare(shape):
        feed = {name: torch.from_numpy(array) for name, array in _feed(shape).items()}

        def call():
            with torch.inference_mode():
                model(feed['words'], attention_mask=feed['mask'], token_type_ids=feed['types'])

        return call

    return prepare


def _feed(shape):
    import numpy as np

    words, types, _ = make_batch(VOCAB_SIZE, shape)
    return {'words': words, 'mask': np.ones_like(words), 'types': types}


def _in_own_process(code, *arguments):
    """Run a function of this file where its libraries disturb no one."""
    code = f'import inference, sys; inference.{code}(*sys.argv[1:])'
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, '-c', code, *map(str, arguments)], check=True, cwd=here)


def write_onnx(layers, path):
    """Write the model of transformers as an ONNX file."""
    import torch

    class Outputs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch_model(int(layers))

        def forward(self, words, mask, types):
            output = self.model(words, attention_mask=mask, token_type_ids=types)
            return output.last_hidden_state, output.pooler_output

    example = torch.ones((2, 8), dtype=torch.int64)
    names = ['words', 'mask', 'types']
    torch.onnx.export(
        Outputs(),
        (example, example, torch.zeros_like(example)),
        path,
        input_names=names,
        output_names=['sequence', 'pooled'],
        dynamic_axes={name: {0: 'batch', 1: 'length'} for name in names},
        opset_version=17,
        dynamo=False,
    )


def write_openvino(layers, path):
    """Write the model of transformers as OpenVINO's own converter makes it."""
    import openvino
    import torch

    example = torch.ones((2, 8), dtype=torch.int64)
    inputs = {'input_ids': example, 'attention_mask': example, 'token_type_ids': example}
    model = openvino.convert_model(torch_model(int(layers)), example_input=inputs)
    openvino.save_model(model, path, compress_to_fp16=False)


def onnxruntime(options, precision):
    import onnxruntime

    path = os.path.join(_cache(options), f'transformers-{options.layers}.onnx')
    if not os.path.exists(path):
        _in_own_process('write_onnx', options.layers, path)
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

    path = os.path.join(_cache(options), f'transformers-{options.layers}.xml')
    if not os.path.exists(path):
        _in_own_process('write_openvino', options.layers, path)
    model = openvino.Core().compile_model(path, 'CPU', {
        'INFERENCE_PRECISION_HINT': {'float32': 'f32', 'bfloat16': 'bf16'}[precision],
        'INFERENCE_NUM_THREADS': threads(),
    })  # fmt: skip
    request = model.create_infer_request()

    def prepare(shape):
        feed = _feed(shape)
        feed = {'input_ids': feed['words'], 'attention_mask': feed['mask'],
                'token_type_ids': feed['types']}  # fmt: skip
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
    pooling = models.Pooling(encoder.get_word_embedding_dimension(), 'mean')
    model = SentenceTransformer(modules=[encoder, pooling, models.Normalize()], device='cpu')
    if precision == 'bfloat16':
        model = model.bfloat16()
    sentences = read_sentences(options.file, options.count)

    def prepare(count):
        return lambda: model.encode(sentences[:count], convert_to_tensor=True).float().numpy()

    return prepare


def _same_vectors(name, vectors, expected):
    """INT8 has a contract of its own."""
    import numpy as np

    from model_zoo.errors import InputError

    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    least = np.min(np.sum(np.multiply(vectors, expected), axis=1))
    print(f'{name}: cosine with the first at least {least:.6f}', flush=True)
    bounds = {'float32': 0.99999, 'bfloat16': 0.999, 'int8': 0.9}
    if least < bounds[name.split()[-1]]:
        raise InputError(f'{name} has other vectors than the first')


# -- generation ------------------------------------------------------------------------------------


def _prompts(shape, vocab_size):
    import numpy as np

    return np.random.RandomState(0).randint(0, vocab_size, shape)


def _gpt2_folder(options):
    """Where GPT-2 is, as all contenders read it; the first one writes it."""
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
            found.tokens for (found,) in generate(made.language_model, prompts, options.new_tokens)
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
        f't{place}' for place in range(model.config.vocab_size)
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
            return [each.sequences_ids[0] for each in results]

        return call

    return prepare


def _same_tokens(name, tokens, expected):
    from model_zoo.errors import InputError

    if 'float32' in name and tokens != expected:
        raise InputError(f'{name} wrote other tokens than ours')


# -- the choice, and the table ---------------------------------------------------------------------

_ONNX, _OPENVINO = ('onnx', 'onnxruntime'), ('onnx', 'onnxruntime', 'openvino')
#: engine -> what it needs, and its precisions
ENGINES = {
    'mxnet': ((), ('float32', 'bfloat16')),
    'onnxruntime': (_ONNX, ('float32', 'int8')),
    'openvino': (_OPENVINO, ('float32', 'bfloat16', 'int8')),
}
_TORCH = ('torch', 'transformers')
#: work -> our function, and peers: name, function, needs, precisions
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
}  # fmt: skip


def contenders(work, precisions, only=()):
    """Ours and the peers', or those that have one of the texts `only` in their names."""
    make, _, peers = WORKS[work]
    ours = [
        Contender(
            f'ours, {engine} {precision}', make, needs, {'engine': engine, 'precision': precision}
        )
        for precision in precisions
        for engine, (needs, known) in ENGINES.items()
        if precision in known and (work, engine, precision) != ('generation', 'openvino', 'int8')
    ]
    theirs = [
        Contender(
            f'{name} {precision}', function, needs,
            {} if function is gluonnlp else {'precision': precision},
        )  # fmt: skip
        for precision in precisions
        for name, function, needs, known in peers
        if precision in known
    ]
    return tuple(
        [each for each in side if not only or any(text in each.name for text in only)]
        for side in (ours, theirs)
    )


def record(path, work, measured):
    """Write the best times, in milliseconds, to the table of this kind of processor."""
    from model_zoo.inference.engines import processor
    from model_zoo.util.files import write_json

    with open(path, encoding='utf-8') as file:
        content = json.load(file)
    table = content['processors'].setdefault(processor(), {})
    for each in measured:
        side = 'ours' if each.contender.startswith('ours') else 'peers'
        rows = table.setdefault(side, {}).setdefault(work, {})
        row = rows.setdefault(each.case.label, {})
        row[each.contender.replace('ours, ', '')] = round(1e3 * min(each.seconds), 1)
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
    parser = add_flags(__doc__.split('\n')[0], rounds=10, seconds=40)
    add = parser.add_argument
    add('--work', default='forward', choices=WORKS)
    add('--precision', nargs='+', default=['float32'], choices=['float32', 'bfloat16', 'int8'])
    add('--only', nargs='+', default=(), metavar='TEXT', help='contenders whose names have it')
    add('--shapes', help='batch x length; of prompts with --work generation')
    add('--layers', type=int, default=12)
    add('--new_tokens', type=int, default=128, help='of --work generation')
    add('--file', help='of --work vectors: one sentence per line, in UTF-8')
    add('--model', help='of --work vectors: folder with weights and vocab.txt')
    add('--count', type=int, default=400, help='how many of the sentences')
    add('--max_seq_length', type=int, default=256, help='of --work vectors')
    add('--cache', metavar='DIR', help='keep what takes long to make here for later runs')
    add('--table', metavar='FILE', help='add the best times to this file of figures')
    add('--readme', metavar='FILE', help='page whose table is made anew of the file of figures')
    args = parser.parse_args(argv)
    shapes = args.shapes or {'generation': '1x32,8x32'}.get(args.work, '1x32,1x128,8x128,32x128')
    cases = [(f'{batch}x{length}', (batch, length)) for batch, length in parse_shapes(shapes)]
    if args.work == 'vectors':
        args.count = len(read_sentences(args.file, args.count))
        cases, unit = [Case(str(args.count), args.count, args.count)], 'sentences/s'
    elif args.work == 'forward':
        cases = [Case(name, shape, bert_flops(args.layers, *shape)) for name, shape in cases]
        unit = 'GF/s'
    else:
        cases = [Case(name, shape, shape[0] * args.new_tokens) for name, shape in cases]
        unit = 'tokens/s'
    # a call of generation takes seconds: the one that gave the tokens has warmed it up
    measured = measure(
        *contenders(args.work, args.precision, args.only), cases, args, args.work != 'generation',
        WORKS[args.work][1],
    )  # fmt: skip
    report(f'{args.work}, {", ".join(args.precision)}', measured, args.json, unit)
    if args.table:
        record(args.table, args.work, measured)
    if args.readme:
        from model_zoo.inference.engines import SPEED_FILE, processor
        from model_zoo.util.files import read_json

        table = read_json(args.table or SPEED_FILE)['processors'][processor()]
        write_between(args.readme, BEGIN, END, speed_lines(table))


if __name__ == '__main__':
    run(main)
