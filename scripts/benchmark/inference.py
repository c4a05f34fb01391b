"""Forward pass of BERT base: ours beside each installed peer's, in one run, as ratios."""

import io
import sys

import model_zoo  # isort: skip  sets MXNet's threads before it loads
import gluonnlp
import mxnet as mx
import numpy as np
from side_by_side import bert_flops, installed, parse_shapes, report, time_in_turn

from bert import BertConfig, BertModel
from model_zoo.app import cli
from model_zoo.registry import gluonnlp_get_model
from model_zoo.util.threads import available_processors


def our_block(config):
    """Our BertModel with random weights, hybridized."""
    block = BertModel(config)
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)
    return block


def gluonnlp_block(config):
    """GluonNLP's BERTModel of the same size."""
    words = {f'w{index}': 1 for index in range(config.vocab_size - 5)}
    vocab = gluonnlp.vocab.BERTVocab(gluonnlp.data.Counter(words))
    block, _ = gluonnlp_get_model(
        'bert_12_768_12',
        vocab=vocab,
        pretrained=False,
        use_decoder=False,
        use_classifier=False,
        hparam_allow_override=True,
        num_layers=config.num_hidden_layers,
        units=config.hidden_size,
        embed_size=config.hidden_size,
        hidden_size=config.intermediate_size,
        num_heads=config.num_attention_heads,
    )
    block.initialize(mx.init.Normal(0.02))
    block.hybridize(static_alloc=True, static_shape=True)
    return block


def torch_model(config):
    """The model of transformers, of the same size."""
    import torch
    import transformers

    torch.set_num_threads(available_processors())
    values = {
        name: value for name, value in config.to_dict().items() if name not in ('pruned_heads',)
    }
    return transformers.BertModel(transformers.BertConfig(**values)).eval()


def onnx_session(model):
    """The model of transformers in ONNX Runtime."""
    import onnxruntime
    import torch

    class Outputs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, words, mask, types):
            output = self.model(words, attention_mask=mask, token_type_ids=types)
            return output.last_hidden_state, output.pooler_output

    file = io.BytesIO()
    example = torch.ones((2, 8), dtype=torch.int64)
    names = ['words', 'mask', 'types']
    torch.onnx.export(
        Outputs(),
        (example, example, torch.zeros_like(example)),
        file,
        input_names=names,
        output_names=['sequence', 'pooled'],
        dynamic_axes={name: {0: 'batch', 1: 'length'} for name in names},
        opset_version=17,
        dynamo=False,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = available_processors()
    return onnxruntime.InferenceSession(
        file.getvalue(), options, providers=['CPUExecutionProvider']
    )


def make_contenders(config):
    """Name -> function(words, types, length) that runs one forward pass to its end."""

    def gluon(block):
        def call(words, types, length):
            outputs = block(
                mx.nd.array(words), mx.nd.array(types), mx.nd.array(length)
            )
            outputs[1].wait_to_read()

        return call

    contenders = {'ours': gluon(our_block(config)), 'gluonnlp': gluon(gluonnlp_block(config))}
    if installed('torch', 'transformers'):
        import torch

        model = torch_model(config)

        def run_torch(words, types, length):
            mask = np.arange(words.shape[1]) < length[:, None]
            with torch.inference_mode():
                model(
                    torch.from_numpy(words),
                    attention_mask=torch.from_numpy(mask.astype(np.int64)),
                    token_type_ids=torch.from_numpy(types),
                )

        contenders['torch+transformers'] = run_torch
        if installed('onnx', 'onnxruntime'):
            session = onnx_session(model)

            def run_onnx(words, types, length):
                mask = (np.arange(words.shape[1]) < length[:, None]).astype(np.int64)
                session.run(None, {'words': words, 'mask': mask, 'types': types})

            contenders['onnxruntime'] = run_onnx
    return contenders


def main(argv=None):
    parser = cli.parser(__doc__)
    parser.add_argument('--shapes', default='1x32,1x128,8x128,32x128', help='batch x length')
    parser.add_argument('--rounds', type=int, default=30, help='calls of each contender')
    parser.add_argument('--seconds', type=float, default=40, help='limit for one shape')
    parser.add_argument('--json', help='file for the figures')
    args = parser.parse_args(argv)
    config = BertConfig()
    contenders = make_contenders(config)
    rng = np.random.RandomState(0)
    rows = []
    for batch, length in parse_shapes(args.shapes):
        words = rng.randint(0, config.vocab_size, (batch, length))
        types = np.zeros_like(words)
        lengths = np.full((batch,), length)
        calls = {
            name: lambda call=call, inputs=(words, types, lengths): call(*inputs)
            for name, call in contenders.items()
        }
        times = time_in_turn(calls, args.rounds, args.seconds)
        rows.append((f'{batch}x{length}', bert_flops(config, batch, length), times))
    report(f'BERT base forward, float32 (model_zoo {model_zoo.__version__})', rows, args.json)


if __name__ == '__main__':
    sys.exit(cli.run(main))
