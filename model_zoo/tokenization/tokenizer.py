"""All tokenizers: texts to ids and back, batches, and files, over the library `tokenizers`."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, TypeVar

from tokenizers import Tokenizer as Library

from ..checkpoint.readers import kept_sums
from ..errors import InputError
from ..pretrained import names_files, resolve_alias
from ..pretrained.files import BESIDE_VOCAB, BPE_NAMES, TOKENIZER_CONFIG
from ..util.files import atomic_write, file_in, make_writable_dir, write_json
from .encoding import UNLIMITED
from .library_files import FILE_NAME, open_rust
from .settings import PYTHON_OPTIONS, SWITCHES
from .text_to_ids import TextToIds
from .vocab_file import find_vocab_file

__all__ = ['open_tokenizer']

TokenizerType = TypeVar('TokenizerType')


class Tokenizer(TextToIds):
    """Text to ids and back, by any tokenizer of the library `tokenizers`.

    It has the whole interface. A family's class has a builder, `library_of`, that makes the
    library's object of a vocabulary's file, and the other methods of the originals. The library's
    post-processor adds the special tokens. Texts are truncated at the end and padded on the right;
    the library's own settings for these are ignored.

    Parameters
    ----------
    source : str, os.PathLike or tokenizers.Tokenizer
        Path of a ``tokenizer.json``, or the library's object, which is copied.
    special_tokens : dict of str to str, optional
        Role (``'unk'``, ``'pad'``, ``'cls'``, ``'sep'``, ``'mask'``, ``'bos'``, ``'eos'``) ->
        token. :meth:`from_pretrained` reads them from ``tokenizer_config.json`` and
        ``special_tokens_map.json``. By default they are found by their usual names among the
        file's special tokens.
    max_len : int, optional
        Longer results log a warning; usually the number of the model's positions.

    Attributes
    ----------
    vocab : gluonnlp.vocab.Vocab
        All tokens, with this tokenizer's ids.
    added_tokens : dict of int to str
        Ids and tokens that stay whole wherever they are in a text.
    splitter : model_zoo.tokenization.basic.Splitter or None
        Finds the words of texts in which the library may find others than the originals.
    pair_type : int
        Token type of a pair's second text, and of the tokens after it.
    pad_token, cls_token, sep_token, mask_token, unk_token, bos_token, eos_token : str or None
        None if the vocabulary has none.
    pad_token_id, cls_token_id, sep_token_id, mask_token_id, unk_token_id, bos_token_id, \
eos_token_id : int or None

    Examples
    --------
    >>> from tokenizers import Tokenizer as Library, models, pre_tokenizers
    >>> library = Library(models.WordLevel({'[UNK]': 0, 'a': 1, 'text': 2}, '[UNK]'))
    >>> library.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = Tokenizer(library)  # or Tokenizer.from_pretrained('FOLDER')
    >>> tokenizer.tokenize('a long text')
    ['a', '[UNK]', 'text']
    """

    #: kinds of vocabularies (`VocabFile.kind`) that the class reads
    kinds = ('tokenizers',)
    #: ending of a word's last symbol in byte pairs
    suffix = ''
    #: positions of the released models
    pretrained_max_len = UNLIMITED
    #: whether the library's tokenizers of the kind are less exact
    needs_python = False
    #: what transformers calls tokenizers like this, without the ending ``Tokenizer``
    names = frozenset()

    def __init__(self, source, special_tokens=None, max_len=None):
        self._set_up(open_rust(source), special_tokens, max_len)

    @classmethod
    def from_pretrained(
        cls: type[TokenizerType],
        name_or_dir: str | os.PathLike,
        dataset_name: str | None = None,
        root: str | os.PathLike | None = None,
        cache_dir: str | os.PathLike | None = None,
        **kwargs: Any,
    ) -> TokenizerType:
        """Open the tokenizer of a saved or released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A folder with the files of :meth:`save_pretrained` or of a release, a vocabulary file, a
            model's name, or a place (see `model_zoo.pretrained.is_place`). A
            ``tokenizer_config.json`` beside them is read.
        dataset_name : str, optional
            Data set of a name's pretrained weights.
        root, cache_dir : str, optional
            The cache of pretrained files.
        **kwargs
            Arguments of the class, which override the files.

        Raises
        ------
        InputError
            If the files belong to another kind of tokenizer.
        CheckpointError
            If a pickle is damaged or has more than plain data.
        UnknownNameError
            If there's no such model.
        PretrainedNotFoundError
            If no source has the vocabulary.
        """
        name, root = os.fspath(name_or_dir), root or cache_dir
        is_file = os.path.isabs(name) or name.endswith(('.txt', '.json'))
        if is_file or names_files(name, weights=False):
            return open_tokenizer(find_vocab_file(path=name, root=root), (cls,), **kwargs)
        model, default_dataset = resolve_alias(name)
        file = find_vocab_file(model, dataset_name or default_dataset, root=root)
        return open_tokenizer(file, (cls,), **cls._released(name, file, kwargs))

    @classmethod
    def _released(cls, name, file, kwargs):
        """`kwargs` for the vocabulary of a model's name."""
        max_len = kwargs.get('max_len') or UNLIMITED
        return {**kwargs, 'max_len': min(max_len, cls.pretrained_max_len)}

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        """Make the tokenizer from a vocabulary that was found."""
        return cls.of_settings(cls.library_of(file), file.settings, **kwargs)

    @classmethod
    def library_of(cls, file):
        """Make the library's object of a `VocabFile`."""
        return open_rust(file.path)

    @classmethod
    def of_settings(cls, rust, settings, **kwargs):
        """Make the tokenizer of the library's object and a folder's `TokenizerSettings`."""
        names = [name for name in kwargs if name in (*SWITCHES, *PYTHON_OPTIONS)]
        changes = {name: kwargs.pop(name) for name in names}
        settings = dataclasses.replace(settings, fields={**settings.fields, **changes})
        rust = settings.applied_to(rust)
        vocab = rust.get_vocab()
        roles = {role: token for role, token in settings.roles.items() if token in vocab}
        given = {'special_tokens': roles, 'max_len': settings.max_len, **kwargs}
        tokenizer = cls.__new__(cls)  # its arguments are the files
        tokenizer._set_up(rust, **given)
        tokenizer._fields = settings.fields
        tokenizer._rust.encode_special_tokens = tokenizer.split_special_tokens
        return tokenizer

    @classmethod
    def exactly(cls, tokenizer):
        """Make the same tokenizer with the originals' methods, or return None."""

    def save_vocabulary(self, path):
        """Write ``tokenizer.json`` to a folder, or to a file; returns its path."""
        path = file_in(path, FILE_NAME)
        with atomic_write(path) as file:
            file.write(self._rust.to_str(pretty=True))
        return path

    def save_pretrained(self, directory):
        """Write the vocabulary and ``tokenizer_config.json``, for :meth:`from_pretrained`."""
        directory = make_writable_dir(directory)
        settings = self._settings()
        with kept_sums(directory) as written:
            written += self._save_files(directory)
            if settings is not None:
                written.append(os.path.join(directory, TOKENIZER_CONFIG))
                write_json(written[-1], settings)
            for name in BESIDE_VOCAB:  # of a former tokenizer
                path = os.path.join(directory, name)
                if path not in written and os.path.exists(path):
                    os.remove(path)
        return tuple(written)

    def _save_files(self, directory):
        return (self.save_vocabulary(directory),)

    def _settings(self):
        """Return the content of tokenizer_config.json, or None not to write it."""
        tokens = {f'{role}_token': token for role, token in self._roles.items() if token}
        return {**self._kept_fields(), **tokens}

    def _kept_fields(self):
        fields = {name: value for name, value in self._fields.items() if name != 'max_len'}
        return fields if self.max_len == UNLIMITED else {**fields, 'model_max_length': self.max_len}

    def to_library(self):
        """Return the tokenizer in the library `tokenizers`, for a ``tokenizer.json``.

        It adds the same special tokens around texts, and keeps those in a text whole. Texts may be
        split differently where the library's Unicode tables differ.
        """
        rust = Library.from_str(self._rust.to_str())
        known = self.added_tokens.values()
        rust.add_special_tokens([token for token in self._kept_whole() if token not in known])
        return rust

    def _kept_whole(self):
        """Return the tokens that stay whole only in the library."""
        return ()


#: the name of `Tokenizer` where it opens a ``tokenizer.json``
FileTokenizer = Tokenizer


def open_tokenizer(file, classes, **kwargs):
    """Open the tokenizer of a vocabulary's file, as it and the files beside it say.

    Parameters
    ----------
    file : VocabFile
    classes : sequence of type
        Classes of tokenizers; the first one for the file's kind reads it.
    **kwargs
        Arguments of the class, which override the files.

    Returns
    -------
    Tokenizer
        An object of one of `classes`, or a plain one if the files need it.

    Raises
    ------
    InputError
        If the files ask for an unknown tokenizer.
    """
    if file.kind == 'tokenizers' and classes[0].needs_python:
        file = file.older(classes[0].kinds)
    if file.kind in Tokenizer.kinds:
        tokenizer = Tokenizer.from_vocab_file(file, **kwargs)
        fields = tokenizer._fields
        for cls in classes:
            exact = cls.exactly(tokenizer)
            if exact is not None:
                return exact
        if fields.get('never_split') or fields.get('do_basic_tokenize') is False:
            raise InputError('do_basic_tokenize and never_split need a vocabulary of word pieces')
        return tokenizer
    settings, name = file.settings, file.settings.tokenizer_class
    for cls in classes:
        if file.kind in cls.kinds and (name is None or name in cls.names):
            tokenizer = cls.from_vocab_file(file, **kwargs)
            ids, roles = tokenizer.vocab.token_to_idx, tokenizer._roles
            known = {*roles.values(), *tokenizer.added_tokens.values()}
            added = settings.added.items()
            if (
                not known.issuperset(token for token, (_, n) in added if n or token in ids)
                or any(roles.get(role) != t for role, t in settings.roles.items() if t in ids)
                or (tokenizer.word_prefix and settings.fields.get('add_prefix_space'))
            ):  # made from the vocabulary alone, it would give other ids
                rust, max_len = tokenizer.to_library(), tokenizer.max_len
                return Tokenizer.of_settings(rust, settings, max_len=max_len)
            tokenizer._fields = settings.fields
            return tokenizer
    asked = f' of the class {name}Tokenizer' if name else ''
    merges = ' or '.join(BPE_NAMES.values())
    hint = f'put {merges} beside it' if file.kind == 'words' else 'save a tokenizer.json there'
    raise InputError(f'there is no tokenizer{asked} for {file.path!r}: {hint}')
