"""Export a block to ONNX, for runtimes without MXNet."""

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from model_zoo.app.engines import engine_forward
from model_zoo.blocks.block import ZooBlock
from model_zoo.checkpoint.readers import sums_path, write_sums
from model_zoo.errors import InputError, MissingExtraError, UnknownNameError
from model_zoo.inference.onnx_engine import OnnxRuntimeEngine
from model_zoo.inference.quantization import leave_out
from model_zoo.onnx import Quantizer, convert, fuse, save, to_onnx, transpose_shared
from model_zoo.pretrained.files import GENERATION_CONFIG, TOKENIZER_CONFIG
from model_zoo.pretrained.labels import label_fields
from model_zoo.tokenization import Tokenizer
from model_zoo.tokenization.encoding import UNLIMITED
from model_zoo.tokenization.vocab import ROLES
from model_zoo.util.choices import ONNX_LIBRARIES, ONNX_PRECISIONS
from model_zoo.util.files import atomic_write, make_writable_dir, write_json, written_together
from model_zoo.util.reading import read_json

from .comparison import ExportError, check_exportable, parameters_of
from .onnx_graphs import graph_of

#: how much ONNX Runtime's results may differ from the block's, relative to the largest
TOLERANCES = {'float32': 1e-4, 'float16': 1e-2}
#: least cosine of the results of 8 bits and the block's
LEAST_COSINE = 0.9
_log = logging.getLogger('export')


def export_onnx(
    block: ZooBlock,
    directory: str | os.PathLike,
    name: str,
    optimize: bool = False,
    precision: str = 'float32',
    measures: Any = None,
) -> str:
    """Write ``<name>.onnx``, which computes the block's outputs at any batch size and length.

    Inputs and outputs are named as by transformers' and optimum's exporters; ids and masks are
    int64, and scores float32:

    - BERT and its heads: ``input_ids``, ``token_type_ids`` and ``attention_mask``, each (batch,
      length), or (batch, choices, length) for multiple choice.
    - `BertSentenceEncoder`: the same, and the output ``sentence_embedding``.
    - GPT's and GPT-2's language models: ``input_ids``, ``attention_mask`` (batch, past length +
      length), ``position_ids``, and for layer N ``past_key_values.N.key`` and ``.value``, (batch,
      heads, past length, head size); outputs ``logits``, ``present.N.key`` and ``.value``, which
      are the past of the next call. The past may be empty, and rows are padded in front.
    - Their models and double heads: ``input_ids``, ``attention_mask``, ``mc_token_ids``.

    The file only has operators of ONNX's opset 13, unless it is optimized or INT8. Weights
    above 2 GB are in a second file, ``<name>.onnx_data``, and ``<name>.onnx-SHA256SUMS`` has the
    checksums. Before the files get their names, ONNX Runtime runs them at three batch sizes and
    lengths, and the results must equal the block's.
    Returns the path.

    Parameters
    ----------
    block : ZooBlock
        In float32, with its parameters.
    directory : str
        Made where it is missing.
    name : str
        Of the file, without its extension.
    optimize : bool
        Whether ONNX Runtime's transformer optimizer fuses each layer's operators: attention, skip
        layer normalization, bias and GELU, and the embeddings. The file then needs ONNX Runtime.
        BERT with one text per example only.
    precision : {'float32', 'float16', 'int8'}
        Precision of the file. The results differ from the block's by at most 1e-4, and 1e-2 in
        float16, relative to the largest if that is above 1. ``'int8'`` quantizes the weights of
        matrix products by channel, and their inputs by each batch's range; the log says how much
        the results differ.
    measures : Measures, optional
        Texts for calibrating and scoring INT8. Layers that cost too much stay in float32;
        ``<name>_int8.json`` beside the file lists them and the scores. For BERT with one text per
        example.

    Raises
    ------
    InputError
        If the block isn't BERT, GPT or GPT-2, isn't float32 or has no parameters, or if the file
        can't be written.
    UnknownNameError
        If the precision is unknown.
    ExportError
        If the results differ.
    MissingExtraError
        If onnx and onnxruntime aren't installed.
    """
    MissingExtraError.check('onnx', *ONNX_LIBRARIES)
    check_exportable(block, name, ['float32'])
    UnknownNameError.check('precision of ONNX', precision, ONNX_PRECISIONS)
    if (optimize or measures is not None) and not block.fuses_in_onnx:
        raise InputError('only a BERT with one text per example can be optimized or calibrated')
    if measures is not None and (precision != 'int8' or (optimize and measures.static)):
        raise InputError('are for INT8, and static INT8 is not optimized', field='measures')
    directory = make_writable_dir(directory)
    graph = graph_of(block)
    used = set(graph.symbol.list_arguments())
    parameters = {name: array for name, array in parameters_of(block).items() if name in used}
    plain = to_onnx(graph.symbol, parameters, graph.inputs, graph.outputs)
    model = fuse(plain, block.config.num_heads, block.config.units) if optimize else plain
    if measures is None:
        model, settings = convert(model, precision), None
    else:
        model, settings = quantize_measured(plain, model, measures)
    if precision != 'int8':
        transpose_shared(model)
    path = os.path.join(directory, f'{name}.onnx')
    with written_together(directory, f'{name}-', graph_files(name)) as temporary:
        files = save(model, os.path.join(temporary, f'{name}.onnx'))
        if settings is None:
            _check(graph, files[0], precision)
        else:  # it isn't calibrated for random texts
            files.append(os.path.join(temporary, f'{name}_int8.json'))
            write_json(files[-1], settings)
        write_sums(sums_path(files[0]), files)
    return path


def graph_files(name):
    """Return the names of the files of which a graph may consist, its own first."""
    return f'{name}.onnx', f'{name}.onnx_data', f'{name}_int8.json'


def _check(graph, path, precision):
    """Raise ExportError unless ONNX Runtime computes what the block does; in 8 bits, nearly so."""
    engine = OnnxRuntimeEngine(path)

    def run(feed):
        given = {name: feed[name] for name in engine.inputs}
        return dict(zip(engine.outputs, engine.session.run(None, given)))

    pairs = list(graph.compare(run))
    if precision == 'int8':
        cosine = _cosine_of(*map(_flat, zip(*pairs)))
        _log.info("in 8 bits, the results' cosine with float32's is %.4f", cosine)
        is_right, problem = cosine >= LEAST_COSINE, f'their cosine is {cosine:.2f}'
    else:
        differences = [np.abs(a - b).max() / max(1, np.abs(b).max()) for a, b in pairs]
        is_right = all(each <= TOLERANCES[precision] for each in differences)  # NaN is not
        problem = f'they differ by up to {max(differences):.2g}'
    if not is_right:
        raise ExportError(f"ONNX Runtime's results are not the block's: {problem}")


def _cosine_of(one, other):
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def _flat(outputs):
    return np.concatenate([output.ravel() for output in outputs])


#: least cosine with the outputs in float32 if there is no labelled data
LEAST_MEASURED = 0.99


class Measures(NamedTuple):
    """Data for calibrating and scoring INT8.

    Attributes
    ----------
    batches : sequence of Batch
        Typical texts for the model.
    static : bool
        Whether the ranges of activations are found once, with `batches`, instead of for each batch.
    evaluate : callable, optional
        ``evaluate(forward) -> (score, report)`` with labelled data, ``forward`` being a function of
        a batch. Default: outputs are compared with those in float32.
    metric : str
        Name of the score.
    most_lost : float
        How much of the score INT8 may cost.
    """

    batches: Sequence
    static: bool = True
    evaluate: Callable | None = None
    metric: str = 'cosine'
    most_lost: float = 0.005


def quantize_measured(plain, model, measures):
    """Make a model in INT8, except for the layers that cost too much."""
    arrays = [[x.asnumpy().astype('int32') for x in batch.inputs] for batch in measures.batches]
    engine = _engine(plain)
    wanted = [_flat(engine.run(*inputs)) for inputs in arrays]
    feeds = [engine.feed(*inputs) for inputs in arrays] if measures.static else None
    quantizer = Quantizer(model, feeds)

    def harm(layer):
        engine = _engine(quantizer.quantize([name for name in quantizer.layers if name != layer]))
        return float(((_flat(engine.run(*arrays[0])) - wanted[0]) ** 2).mean())

    def cosine(forward):
        outputs = [forward(batch) for batch in measures.batches]
        outputs = [item if isinstance(item, list) else [item] for item in outputs]
        ours = _flat([array.asnumpy() for item in outputs for array in item])
        score = _cosine_of(ours, np.concatenate(wanted))
        return score, {'cosine': score}

    evaluate = measures.evaluate or cosine
    most_lost = measures.most_lost if measures.evaluate else 1 - LEAST_MEASURED
    best, report = evaluate(engine_forward(engine))
    _log.info('float32: %s %.4f', measures.metric, best)

    def attempt(exclude):
        made = quantizer.quantize(exclude)
        score, int8_report = evaluate(engine_forward(_engine(made)))
        without = f' without {", ".join(exclude)}' if exclude else ''
        _log.info('INT8%s: %s %.4f, of float32 %.4f', without, measures.metric, score, best)
        return score, int8_report, made

    def is_enough(tried):
        return best - tried[0] <= most_lost

    found, exclude = leave_out(quantizer.layers, harm, attempt, is_enough)
    score, int8_report, made = found
    return made, {
        'quantization': 'static' if measures.static else 'dynamic',
        'metric': measures.metric,
        'float32': report,
        'int8': int8_report,
        'lost': best - score,
        'float32_layers': exclude,
        'layers': len(quantizer.layers),
    }


def _engine(model):
    """Return an engine of a model that needs no file when it runs."""
    with tempfile.TemporaryDirectory() as folder:
        return OnnxRuntimeEngine(save(model, os.path.join(folder, 'model.onnx'))[0])


def export_onnx_folder(
    block: ZooBlock,
    directory: str | os.PathLike,
    tokenizer: Tokenizer | None = None,
    optimize: bool = False,
    precision: str = 'float32',
    measures: Any = None,
) -> list[str]:
    """Write a folder that runs without this project, in the layout of transformers.js.

    It holds ``model.onnx`` (see `export_onnx`), ``config.json`` with the names of the labels, and
    with a tokenizer ``tokenizer.json``, which the library `tokenizers` opens,
    ``tokenizer_config.json``, ``special_tokens_map.json`` and the vocabulary. Returns the paths,
    beginning with the graph's.

    Parameters
    ----------
    block, directory, optimize, precision, measures
        As of `export_onnx`.
    tokenizer : model_zoo.tokenization.Tokenizer, optional
        Default: the tokenizer of the block's pretrained weights.
    """
    directory = make_writable_dir(directory)
    tokenizer = tokenizer or block.own_tokenizer()
    if tokenizer is None:
        _log.warning('the vocabulary is not known: the folder %r has no tokenizer', directory)
    contents = {'config.json': _config(block, tokenizer)}
    if block.base.generation_config:
        contents[GENERATION_CONFIG] = block.base.generation_config
    with written_together(directory, 'model-', graph_files('model')) as folder:
        export_onnx(block, folder, 'model', optimize, precision, measures)
        paths = [os.path.join(folder, name) for name in graph_files('model')]
        paths = [*filter(os.path.exists, paths)]
        for name, content in contents.items():
            paths.append(os.path.join(folder, name))
            write_json(paths[-1], content)
        if tokenizer is not None:
            paths += _write_tokenizer(tokenizer, block, folder)
    return [os.path.join(directory, os.path.relpath(path, folder)) for path in paths]


def _config(block, tokenizer):
    name = block.huggingface_name or type(block).__name__
    _, fields = block.config.to_format('huggingface', name)
    if block.num_labels is not None:
        fields.update(label_fields(block.label_names))
    for name in ('pad_token_id', 'bos_token_id', 'eos_token_id'):
        token = None if tokenizer is None else getattr(tokenizer, name)
        if token is not None and name not in block.config.fixed:  # RoBERTa's positions need its own
            fields.setdefault(name, token)
    return fields


def _write_tokenizer(tokenizer, block, directory):
    paths = {*tokenizer.save_pretrained(directory)}
    named = {f'{role}_token': getattr(tokenizer, f'{role}_token') for role in ROLES}
    named = {name: token for name, token in named.items() if token is not None}
    library = os.path.join(directory, 'tokenizer.json')
    name = type(tokenizer).__name__  # transformers has these names, too, and one for any file
    name = 'PreTrainedTokenizerFast' if library in paths else name
    path = os.path.join(directory, TOKENIZER_CONFIG)
    fields = {**read_json(path, shape=dict, default={}), **named, 'tokenizer_class': name}
    length = tokenizer.max_len if tokenizer.max_len < UNLIMITED else block.context_length
    if length is not None:
        fields['model_max_length'] = length
    try:
        content = tokenizer.to_library().to_str(pretty=True)
    except InputError as error:
        _log.warning('there is no tokenizer.json: %s', error)
    else:
        with atomic_write(library) as file:
            file.write(content)
        paths.add(library)
    for file, values in {'special_tokens_map.json': named, TOKENIZER_CONFIG: fields}.items():
        paths.add(os.path.join(directory, file))
        write_json(os.path.join(directory, file), values)
    return sorted(paths)
