"""A vocabulary's file of any family: its kind and content."""

import dataclasses
import functools
import os
import re
import unicodedata

from ..errors import InputError
from ..pretrained.files import BPE_NAMES, VOCAB_NAMES
from ..pretrained.find import find_files
from ..util.reading import parse_json, read_lines
from ..util.remote import open_binary
from .library_files import FAIRSEQ_NAME, FILE_NAME, open_rust
from .settings import read_settings
from .vocab import ROLES, check_tokens, load_vocab

#: the library's models -> kinds of files with the same content
_MODELS = {'WordPiece': 'wordpiece', 'BPE': 'bpe', 'Unigram': 'fairseq', 'WordLevel': 'words'}

#: name of a file, or its ending -> its kind
_KINDS = {FILE_NAME: 'tokenizers', FAIRSEQ_NAME: 'fairseq', '.txt': 'wordpiece'}
_KINDS.update(dict.fromkeys(('.spiece', '.model'), 'sentencepiece'))
_KINDS.update(dict.fromkeys(('.bin', '.pkl', '.json'), 'words'))
#: the kinds that the classes for BERT read
_OF_BERT = ('wordpiece', 'gluonnlp', 'sentencepiece')


class VocabFile:
    """A vocabulary's file; its name and the files beside it determine its kind.

    Parameters
    ----------
    files : model_zoo.pretrained.Files
        They have the vocabulary. Their `special_tokens` are keyword arguments of
        ``BERTVocab.from_sentencepiece``.
    do_lower_case : bool, optional
        Used instead of the files'. If both are None, the tokens show it.

    Attributes
    ----------
    path : str
    stated_lower_case : bool or None
        What the argument or the files say; None if neither does.
    kind : str
        ``'wordpiece'`` (vocab.txt), ``'gluonnlp'`` (.vocab), ``'sentencepiece'``, ``'fairseq'`` (a
        SentencePiece model whose ids are XLM-R's), ``'bpe'`` (JSON with merges beside it),
        ``'tokenizers'`` (tokenizer.json) or ``'words'`` (other JSON, or a pickle).
    merges_path : str or None
        Path of the merges beside a vocabulary of byte pairs.
    """

    def __init__(self, files, do_lower_case=None):
        self.path, self._files = files.vocab, files
        self.stated_lower_case = files.do_lower_case if do_lower_case is None else do_lower_case
        if self.stated_lower_case is not None:
            self.do_lower_case = self.stated_lower_case
        folder, name = os.path.split(self.path)
        extension = os.path.splitext(name)[1]
        self.kind = _KINDS.get(name) or _KINDS.get(extension, 'gluonnlp')
        merges = os.path.join(folder, BPE_NAMES.get(name, BPE_NAMES['vocab.json']))
        self.merges_path = merges if os.path.isfile(merges) else None
        if self.merges_path and self.kind == 'words' and extension == '.json':
            self.kind = 'bpe'

    def older(self, kinds):
        """Return an older file of one of these kinds beside this one, or this one."""
        folder = os.path.dirname(self.path)
        others = (os.path.join(folder, name) for name in VOCAB_NAMES)
        files = (dataclasses.replace(self._files, vocab=p) for p in others if os.path.isfile(p))
        files = (VocabFile(each, self.stated_lower_case) for each in files)
        return next((file for file in files if file.kind in kinds), self)

    #: the `TokenizerSettings` beside the file
    settings = functools.cached_property(read_settings)

    @property
    def model_kind(self):
        """The kind of the older file whose content the file has."""
        if self.kind != 'tokenizers':
            return self.kind
        return _MODELS.get(type(open_rust(self.path).model).__name__)

    @property
    def has_word_ends(self):
        """Whether byte pairs mark the ends of words, as OpenAI GPT's do."""
        if self.kind == 'tokenizers':
            return bool(open_rust(self.path).model.end_of_word_suffix)
        return has_word_ends(self.merges_path)

    @functools.cached_property
    def do_lower_case(self):
        """Whether texts are lowered. Default: whether all tokens are in lower case."""
        if self.kind not in _OF_BERT:
            return False  # their tokenizers find it out
        tokens = self.vocab.idx_to_token
        words = (token for token in tokens if not re.fullmatch(r'[\[<].*[\]>]', token))
        # as BERT lowers them, without accents: not a vocabulary of Korean, whose letters it splits
        return all(word == _lowered(word) for word in words)

    @functools.cached_property
    def vocab(self):
        """The vocabulary of a file of BERT's or GluonNLP's kinds; the file is read once."""
        kind = self.kind
        if kind == 'wordpiece':
            return load_vocab(self.path, self.settings.roles)
        from gluonnlp.vocab import BERTVocab

        try:
            if kind == 'sentencepiece':
                return BERTVocab.from_sentencepiece(self.path, **self._files.special_tokens)
            with open_binary(self.path) as file:
                text = file.read().decode()
            roles = dict.fromkeys(ROLES.values(), str | None)
            parse_json(text, {'idx_to_token': list[str], **roles})
            vocab = BERTVocab.from_json(text)
            ids = {token: number for number, token in enumerate(vocab.idx_to_token)}
            check_tokens(ids)
            if len(ids) < len(vocab.idx_to_token) or ids != dict(vocab.token_to_idx):
                raise ValueError('its ids are not the positions of different tokens')
            return vocab
        except Exception as error:  # these libraries check little of what they read
            name = 'SentencePiece model' if kind == 'sentencepiece' else 'GluonNLP vocabulary'
            raise InputError(f'{self.path!r} cannot be read as a {name}: {error}') from error


def has_word_ends(path):
    """Return whether the merges in a file mark the ends of words, as OpenAI GPT's do."""
    return any(line.rstrip().endswith('</w>') for _, line in read_lines(os.fspath(path)))


def _lowered(word):
    parts = unicodedata.normalize('NFD', word.lower())
    return ''.join(part for part in parts if unicodedata.category(part) != 'Mn')


def find_vocab_file(model=None, dataset=None, root=None, path=None, do_lower_case=None):
    """Find the `VocabFile` of a model; see `model_zoo.pretrained.find_files`."""
    return VocabFile(find_files(model, dataset, root, path, weights=False), do_lower_case)
