"""Forward pass of BERT base: ours beside each installed peer's, in turn, as ratios.

Ours is there twice: as MXNet runs it, and as ONNX Runtime runs the file that the engine makes of it
(``engine='onnxruntime'``). With ``--precision int8`` the engine's INT8 is compared with the dynamic
INT8 that ONNX Runtime and torch make of transformers' model.
"""

import multiprocessing
import os

from side_by_side import (
    Case,
    Contender,
    add_flags,
    bert_flops,
    measure,
    parse_shapes,
    report,
    run,
    threads,
)

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


def ours(options):
    from bert import BertConfig, BertModel

    block = BertModel(BertConfig(num_hidden_layers=options.layers))
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)
    return _gluon_forward(block)


def ours_by_engine(options):
    os.environ['MXNET_HOME'] = options.folder  # where the engine keeps its file
    from bert import BertConfig, BertModel
    from model_zoo.inference import make_engine

    block = BertModel(BertConfig(num_hidden_layers=options.layers))
    block.initialize()
    engine = make_engine(block, 'onnxruntime', options.precision)

    def prepare(shape):
        batch = [array.astype('int32') for array in make_batch(VOCAB_SIZE, shape)]
        return lambda: engine.run(*batch) and None  # the outputs are not to be sent

    return prepare


def gluonnlp(options):
    return _gluon_forward(gluonnlp_block(options.layers))


def transformers(options):
    import numpy as np
    import torch

    model = torch_model(options.layers)
    if options.precision == 'int8':
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)

    def prepare(shape):
        words, types, length = make_batch(VOCAB_SIZE, shape)

        def call():
            mask = np.arange(words.shape[1]) < length[:, None]
            with torch.inference_mode():
                model(
                    torch.from_numpy(words),
                    attention_mask=torch.from_numpy(mask.astype(np.int64)),
                    token_type_ids=torch.from_numpy(types),
                )

        return call

    return prepare


def write_onnx(layers, path):
    """Write the model of transformers as an ONNX file."""
    import torch

    class Outputs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch_model(layers)

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


def onnxruntime(options):
    import numpy as np
    import onnxruntime

    path = os.path.join(options.folder, 'model.onnx')
    writer = multiprocessing.get_context('spawn').Process(
        target=write_onnx, args=(options.layers, path)
    )
    writer.start()  # torch stays out of this process
    writer.join()
    if options.precision == 'int8':
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(path, path := os.path.join(options.folder, 'int8.onnx'))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads()
    session = onnxruntime.InferenceSession(path, settings, providers=['CPUExecutionProvider'])

    def prepare(shape):
        words, types, length = make_batch(VOCAB_SIZE, shape)

        def call():
            mask = (np.arange(words.shape[1]) < length[:, None]).astype(np.int64)
            session.run(None, {'words': words, 'mask': mask, 'types': types})

        return call

    return prepare


BY_ENGINE = Contender('ours, onnxruntime', ours_by_engine, ('onnx', 'onnxruntime'))
PEERS = [
    Contender('gluonnlp', gluonnlp, ('gluonnlp',)),
    Contender('torch+transformers', transformers, ('torch', 'transformers')),
    Contender('onnxruntime', onnxruntime, ('torch', 'transformers', 'onnx', 'onnxruntime')),
]


def main(argv=None):
    parser = add_flags(__doc__, rounds=30, seconds=40)
    parser.add_argument('--shapes', default='1x32,1x128,8x128,32x128', help='batch x length')
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--precision', default='float32', choices=['float32', 'int8'])
    args = parser.parse_args(argv)
    cases = [
        Case(f'{batch}x{length}', (batch, length), bert_flops(args.layers, batch, length))
        for batch, length in parse_shapes(args.shapes)
    ]
    own, peers = [BY_ENGINE], PEERS
    if args.precision == 'float32':
        own = [Contender('ours', ours), *own]
    else:
        peers = [each for each in peers if each.make is not gluonnlp]  # which has no INT8
    measured = measure(own, peers, cases, args)
    report(f'BERT base forward, {args.layers} layers, {args.precision}', measured, args.json)


if __name__ == '__main__':
    run(main)
