"""Contenders that run a file: transformers' models in ONNX Runtime, OpenVINO and CTranslate2."""

import os

from harness import run_apart, threads
from inputs import bert_feed, prompts


def write_onnx(options, path):
    """Write transformers' BERT as torch exports it."""
    import torch
    from pytorch import bert

    model, names = bert(options), list(bert_feed((2, 8)))

    class Positional(torch.nn.Module):  # the exporter can't pass inputs by name
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *arrays):
            outputs = self.model(**dict(zip(names, arrays)))
            return outputs.last_hidden_state, outputs.pooler_output

    torch.onnx.export(
        Positional().eval(),
        tuple(map(torch.from_numpy, bert_feed((2, 8)).values())),
        path,
        input_names=names,
        output_names=['sequence', 'pooled'],
        dynamic_axes={name: {0: 'batch', 1: 'length'} for name in names},
        opset_version=17,
        dynamo=False,
    )


def write_openvino(options, path):
    """Write transformers' BERT as OpenVINO's own converter makes it."""
    import openvino
    import torch
    from pytorch import bert

    example = {name: torch.from_numpy(array) for name, array in bert_feed((2, 8)).items()}
    model = openvino.convert_model(bert(options), example_input=example)
    openvino.save_model(model, path, compress_to_fp16=False)


def _file(options, write, suffix):
    """Return the path of a file; a separate process makes it if it is missing."""
    path = os.path.join(options.folder, f'transformers-{options.layers}-{options.units}{suffix}')
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
        feed = bert_feed(shape)
        return lambda: session.run(None, feed) and None

    return prepare


def openvino(options, precision):
    import openvino

    path = _file(options, 'write_openvino', '.xml')
    model = openvino.Core().compile_model(
        path,
        'CPU',
        {
            'INFERENCE_PRECISION_HINT': {'float32': 'f32', 'bfloat16': 'bf16'}[precision],
            'INFERENCE_NUM_THREADS': threads(),
        },
    )
    request = model.create_infer_request()

    def prepare(shape):
        feed = bert_feed(shape)
        return lambda: request.infer(feed, share_inputs=True) and None

    return prepare


def write_ctranslate2(options, path, precision):
    """Convert GPT-2 as CTranslate2's own converter does, without a tokenizer."""
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
    Converter(options.gpt2).convert(path, quantization=precision, force=True)


def ctranslate2(options, precision):
    import ctranslate2

    path = f'{options.gpt2}-ctranslate2-{precision}'
    if not os.path.isdir(path):
        run_apart('runtimes:write_ctranslate2', options, path=path, precision=precision)
    model = ctranslate2.Generator(
        path, compute_type=precision, inter_threads=1, intra_threads=threads()
    )

    def prepare(shape):
        words = [[f't{id_}' for id_ in row] for row in prompts(shape, options.vocab_size)]

        def call():
            results = model.generate_batch(
                words,
                max_length=options.new_tokens,
                min_length=options.new_tokens,
                sampling_topk=1,
                include_prompt_in_result=False,
            )
            return [result.sequences_ids[0] for result in results]

        return call

    return prepare
