"""Export a block of BERT to ONNX, for runtimes without MXNet."""

import os
import tempfile

import mxnet as mx
import numpy as np

from bert.model import BertBlock
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.layers.sequences import Mask
from model_zoo.layers.standard import standard_operators
from model_zoo.onnx import to_onnx
from model_zoo.util.files import make_writable_dir

from .export import ExportError, check_exportable, flatten, make_batch, plain_calls

__all__ = ['export_onnx']

#: our names of inputs -> transformers'
INPUTS = {
    'words': 'input_ids',
    'token_types': 'token_type_ids',
    'valid_length': 'attention_mask',
}
#: name of a class, or of one that it derives from -> transformers' names of its outputs
OUTPUTS = {
    'BertForPreTraining': ('prediction_logits', 'seq_relationship_logits'),
    'BertForQuestionAnswering': ('start_logits', 'end_logits'),
}
TOLERANCE = 1e-4  # of ONNX Runtime's results against the block's


def export_onnx(block, directory, name, optimize=False):
    """Write ``<name>.onnx``, which computes what the block does at any batch size and length.

    The inputs are ``input_ids``, ``token_type_ids`` and ``attention_mask``, int64, each (batch,
    length), or (batch, choices, length) for multiple choice. The outputs have the names that
    transformers' exporter gives them. The file holds operators of ONNX's opset 13 alone, unless it
    is optimized. Before it gets its name, ONNX Runtime runs it at three batch sizes and lengths,
    and the results must equal the block's within 1e-4.

    Parameters
    ----------
    block : BertBlock
        `BertModel` or a head on it, in float32, with its parameters.
    directory : str
        Made where it is missing.
    name : str
        Of the file, without its extension.
    optimize : bool
        Whether ONNX Runtime's transformer optimizer joins each layer's operators: attention,
        skip layer normalization, bias and GELU, and the embeddings. The file then needs ONNX
        Runtime. BertModel and heads with one text an example only.

    Returns
    -------
    str
        The file's path.

    Raises
    ------
    InputError
        If the block isn't of BERT, isn't float32, has no parameters, or the file can't be written.
    ExportError
        If the results differ.
    MissingExtraError
        If onnx and onnxruntime aren't installed.

    Examples
    --------
    >>> from bert import BertForSequenceClassification
    >>> model = BertForSequenceClassification.from_pretrained('all-MiniLM-L6-v2')
    >>> path = export_onnx(model, 'exported', 'classifier')  # doctest: +SKIP
    """
    _require_extra()
    check_exportable(block)
    if not isinstance(block, BertBlock):
        raise InputError(f'{type(block).__name__} is not a model of BERT: only these become ONNX')
    if block.precision != 'float32':
        raise InputError(f"the block is {block.precision}: call block.cast('float32') first")
    if block.base.output_attentions:
        raise InputError('a model with output_attentions=True cannot become ONNX')
    if optimize and block.word_axes != 2:
        raise InputError(f'{type(block).__name__} cannot be optimized: an example has many texts')
    directory = make_writable_dir(directory)
    if not name or os.path.basename(name) != name:
        raise InputError(f'name must be a file name without extension, but is {name!r}')
    model = _translate(block)
    path = os.path.join(directory, f'{name}.onnx')
    with tempfile.TemporaryDirectory(dir=directory, prefix=f'.{name}-') as temporary:
        new = os.path.join(temporary, 'model.onnx')
        _save(model, new)
        if optimize:
            new = _optimize(new, block.config)
        _compare(block, new)
        os.replace(new, path)
    return path


def _require_extra():
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of('onnx and onnxruntime', 'onnx') from error


def _translate(block):
    variables = {name: mx.sym.var(name) for name in block.export_inputs}
    arguments = {**variables, 'valid_length': Mask([variables['valid_length']])}
    with standard_operators():
        symbol = mx.sym.Group(flatten(block(**arguments)))
    used = set(symbol.list_arguments())
    params = {
        each.name: each.data(each.list_ctx()[0]).asnumpy()
        for each in block.collect_params().values()
        if each.name in used
    }
    axes = ('batch', 'choices', 'sequence') if block.word_axes == 3 else ('batch', 'sequence')
    inputs = {name: (INPUTS[name], 'int64', axes) for name in variables}
    return to_onnx(symbol, params, inputs, dict.fromkeys(_output_names(block, symbol)))


def _output_names(block, symbol):
    count = len(symbol.list_outputs())
    if block is not block.base:
        names = (OUTPUTS.get(each.__name__) for each in type(block).__mro__)
        return next(filter(None, names), ('logits',))
    states = count - len([each for each in block.output_names if each != 'sequence'])
    hidden = [f'hidden_states_{layer + 1}' for layer in range(states - 1)]
    theirs = {'pooled': 'pooler_output', 'next_sentence': 'seq_relationship_logits',
              'masked_lm': 'prediction_logits'}  # fmt: skip
    others = [theirs[each] for each in block.output_names if each in theirs]
    return [*hidden, 'last_hidden_state', *others]


def _save(model, path):
    import onnx

    try:
        onnx.save(model, path)
    except OSError as error:
        raise InputError(f'cannot write {path!r}: {error.strerror or error}') from error


def _optimize(path, config):
    """ONNX Runtime's transformer optimizer; the mask is kept as it is, for padding anywhere."""
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    options = FusionOptions('bert')
    options.use_raw_attention_mask(True)
    optimized = optimizer.optimize_model(
        path,
        'bert',
        num_heads=config.num_heads,
        hidden_size=config.units,
        optimization_options=options,
        opt_level=0,
    )
    fused = f'{path}.optimized'
    optimized.save_model_to_file(fused)
    return fused


def _compare(block, path):
    """Raise ExportError unless ONNX Runtime computes what the block does."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    random = np.random.RandomState(0)
    limit = block.context_length
    for batch_size, length in ((1, min(16, limit)), (3, min(23, limit)), (2, 1)):
        names = block.export_inputs
        batch = make_batch(block, names, batch_size, length, 'int64', random, masked=True)
        with plain_calls(block):
            expected = [each.asnumpy() for each in flatten(block(**batch))]
        used = {each.name for each in session.get_inputs()}
        arrays = zip(batch, flatten(list(batch.values())))
        feed = {INPUTS[name]: array.asnumpy() for name, array in arrays}
        results = session.run(None, {name: feed[name] for name in used})
        for wanted, result in zip(expected, results):
            same = result.shape == wanted.shape
            difference = np.abs(result - wanted).max() if same else np.inf
            if not difference <= TOLERANCE * max(1, np.abs(wanted).max()):
                raise ExportError(
                    f'ONNX Runtime differs from the block by {difference:.2g} on a batch of shape '
                    f'{batch["words"].shape}; nothing was written'
                )
