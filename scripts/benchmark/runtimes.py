"""Contenders that run a file: transformers' models in ONNX Runtime and OpenVINO."""

import os

from harness import run_apart, threads
from inputs import bert_feed


def write_onnx(options, path):
    """Write transformers' encoder as torch exports it."""
    import torch
    from pytorch import encoder

    feed = bert_feed((2, 8), options.family)
    model, names = encoder(options), list(feed)

    class Positional(torch.nn.Module):  # the exporter can't pass inputs by name
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *arrays):
            return self.model(**dict(zip(names, arrays))).to_tuple()[:2]

    arrays = tuple(map(torch.from_numpy, feed.values()))
    axes = {name: {0: 'batch', 1: 'length'} for name in names}
    options = {'dynamic_axes': axes, 'opset_version': 17, 'dynamo': False}
    options.update(input_names=names)
    torch.onnx.export(Positional().eval(), arrays, path, **options)


def write_openvino(options, path):
    """Write transformers' encoder as OpenVINO's own converter makes it."""
    import openvino
    import torch
    from pytorch import encoder

    feed = bert_feed((2, 8), options.family)
    example = {name: torch.from_numpy(array) for name, array in feed.items()}
    model = openvino.convert_model(encoder(options), example_input=example)
    openvino.save_model(model, path, compress_to_fp16=False)


def _file(options, write, suffix):
    """Return the path of a file; a separate process makes it if it is missing."""
    name = f'transformers-{options.family}-{options.layers}-{options.units}{suffix}'
    path = os.path.join(options.folder, name)
    if not os.path.exists(path):
        run_apart(f'runtimes:{write}', options, path=path)
    return path


def onnxruntime(options, precision):
    import onnxruntime

    path = _file(options, 'write_onnx', '.onnx')
    if precision == 'int8':
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(path, path := f'{path}-int8')
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads()
    session = onnxruntime.InferenceSession(path, settings, providers=['CPUExecutionProvider'])

    def prepare(shape):
        feed = bert_feed(shape, options.family)
        return lambda: session.run(None, feed) and None

    return prepare


def openvino(options, precision):
    import openvino

    path = _file(options, 'write_openvino', '.xml')
    hint = {'float32': 'f32', 'bfloat16': 'bf16'}[precision]
    settings = {'INFERENCE_PRECISION_HINT': hint, 'INFERENCE_NUM_THREADS': threads()}
    request = openvino.Core().compile_model(path, 'CPU', settings).create_infer_request()

    def prepare(shape):
        feed = bert_feed(shape, options.family)
        return lambda: request.infer(feed, share_inputs=True) and None

    return prepare
