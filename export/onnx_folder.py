"""A folder with all that runs a model without this project: ONNX, tokenizer, configuration."""

import logging
import os

from model_zoo.errors import InputError
from model_zoo.pretrained.files import TOKENIZER_CONFIG, read_tokenizer_config
from model_zoo.tasks.labels import label_names
from model_zoo.tokenization import FileTokenizer
from model_zoo.tokenization.text import UNLIMITED
from model_zoo.tokenization.vocab import ROLES
from model_zoo.util.files import atomic_write, make_writable_dir, write_json

from .onnx_file import export_onnx, measures_path

__all__ = ['export_onnx_folder']

_log = logging.getLogger('export')


def export_onnx_folder(
    block, directory, tokenizer=None, optimize=False, precision='float32', measures=None
):
    """Write a folder that serves a model without this project, as optimum and transformers.js do.

    It holds ``model.onnx`` (see `export_onnx`), ``config.json`` with the names of the labels, and
    with a tokenizer ``tokenizer.json``, which the library `tokenizers` opens,
    ``tokenizer_config.json``, ``special_tokens_map.json`` and the vocabulary.

    Parameters
    ----------
    block : ZooBlock
    directory : str
        Made where it is missing.
    tokenizer : model_zoo.tokenization.Tokenizer, optional
        By default the one that belongs to the pretrained weights that the block began with.
    optimize, precision, measures
        See `export_onnx`.

    Returns
    -------
    list of str
        The files' paths, that of the graph first.

    Raises
    ------
    InputError, UnknownNameError, ExportError, MissingExtraError
        See `export_onnx`.
    """
    directory = make_writable_dir(directory)
    path = export_onnx(block, directory, 'model', optimize, precision, measures)
    others = [f'{path}_data', measures_path(path)]
    paths = [path, *filter(os.path.exists, others)]
    tokenizer = tokenizer or block.own_tokenizer()
    config = os.path.join(directory, 'config.json')
    write_json(config, _config(block, tokenizer))
    paths.append(config)
    if tokenizer is None:
        _log.warning('the vocabulary is not known: the folder %r has no tokenizer', directory)
        return paths
    return [*paths, *_write_tokenizer(tokenizer, block, directory)]


def _config(block, tokenizer):
    architecture = block.huggingface_name or type(block).__name__
    _, fields = block.config.to_format('huggingface', architecture)
    count = getattr(block, 'num_labels', None)
    if count is not None:
        names = label_names(block)
        fields['id2label'] = {str(number): name for number, name in enumerate(names)}
        fields['label2id'] = {name: number for number, name in enumerate(names)}
        if count == 1:
            fields['problem_type'] = 'regression'
    for role in ('pad', 'bos', 'eos'):
        token = None if tokenizer is None else getattr(tokenizer, f'{role}_token_id')
        if token is not None:
            fields.setdefault(f'{role}_token_id', token)
    return fields


def _write_tokenizer(tokenizer, block, directory):
    paths = list(tokenizer.save_pretrained(directory))
    named = {f'{role}_token': getattr(tokenizer, f'{role}_token') for role in ROLES}
    named = {name: token for name, token in named.items() if token is not None}
    special = os.path.join(directory, 'special_tokens_map.json')
    write_json(special, named)
    config = os.path.join(directory, TOKENIZER_CONFIG)
    name = type(tokenizer).__name__  # transformers has these names, too, and one for any file
    name = 'PreTrainedTokenizerFast' if isinstance(tokenizer, FileTokenizer) else name
    fields = {**read_tokenizer_config(directory), **named, 'tokenizer_class': name}
    length = tokenizer.max_len if tokenizer.max_len < UNLIMITED else block.context_length
    if length is not None:
        fields['model_max_length'] = length
    try:
        content = tokenizer.to_library().to_str(pretty=True)
    except InputError as error:
        _log.warning('there is no tokenizer.json: %s', error)
    else:
        library = os.path.join(directory, 'tokenizer.json')
        with atomic_write(library) as file:
            file.write(content)
        paths.append(library)
    write_json(config, fields)
    return [*(each for each in paths if each != config), special, config]
