"""A tokenizer's files: opened by a name or a folder, saved, and written as a tokenizer.json."""

import abc
import math
import os

from tokenizers import processors

from ..checkpoint.sums import kept_sums
from ..errors import InputError
from ..pretrained import names_files, resolve_alias
from ..pretrained.files import TOKENIZER_CONFIG, read_tokenizer_config
from ..util.files import make_writable_dir, write_json
from .text import UNLIMITED
from .vocab_file import find_vocab_file

__all__ = ['TokenizerFiles']


class TokenizerFiles(abc.ABC):
    """The part of `Tokenizer` that reads and writes files."""

    @classmethod
    def from_pretrained(
        cls, name_or_dir, dataset_name=None, root=None, cache_dir=None, **kwargs
    ):
        """Make the tokenizer of a saved or of a released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A directory with the files of :meth:`save_pretrained` or of a release, a vocabulary's
            file, a model's name, or a place (see `model_zoo.pretrained.is_place`).
            A ``tokenizer_config.json`` beside them is read.
        dataset_name : str, optional
            Data set of the pretrained weights, for a name.
        root : str, optional
            Where pretrained files are kept.
        cache_dir : str, optional
            The same as `root`.
        **kwargs
            Arguments of the class, which win over what the files say.

        Raises
        ------
        InputError
            If the files belong to another kind of tokenizer.
        CheckpointError
            If a pickle is damaged or asks for more than plain data.
        UnknownNameError
            If there's no such model.
        PretrainedNotFoundError
            If no source has the vocabulary.
        """
        name = os.fspath(name_or_dir)
        is_file = os.path.isabs(name) or name.endswith(('.txt', '.json'))
        if is_file or names_files(name, weights=False):
            return cls.from_vocab_file(find_vocab_file(path=name, root=root), **kwargs)
        model, default_dataset = resolve_alias(name)
        file = find_vocab_file(model, dataset_name or default_dataset, root=root or cache_dir)
        return cls.from_vocab_file(file, **cls._released(name, file, kwargs))

    @classmethod
    def _released(cls, name, file, kwargs):
        """`kwargs` for the vocabulary of a model's name."""
        return kwargs

    @classmethod
    @abc.abstractmethod
    def from_vocab_file(cls, file, **kwargs):
        """Make the tokenizer from a vocabulary that was found.

        Parameters
        ----------
        file : model_zoo.tokenization.vocab_file.VocabFile
        **kwargs
            Arguments of the class, which win over what the files say.
        """

    @staticmethod
    def _kept_settings(file):
        """The `max_len` of tokenizer_config.json beside the vocabulary."""
        config = read_tokenizer_config(os.path.dirname(file.path))
        max_len = config.get('max_len', config.get('model_max_length'))
        if max_len is None:
            return {}
        if not isinstance(max_len, (int, float)) or not 0 < max_len < math.inf:
            raise InputError(
                f'{TOKENIZER_CONFIG} beside {file.path!r} has the length {max_len!r:.80}: give a '
                'positive number'
            )
        return {'max_len': int(max_len)}

    @abc.abstractmethod
    def save_vocabulary(self, path):
        """Write the vocabulary.

        Parameters
        ----------
        path : str or os.PathLike
            A directory; or a file, where the vocabulary is one.

        Returns
        -------
        str or tuple of str
            Path of the file, or of the files.
        """

    def save_pretrained(self, directory):
        """Write the vocabulary and ``tokenizer_config.json``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Paths of the files.
        """
        directory = make_writable_dir(directory)
        settings = self._settings()
        with kept_sums(directory) as written:
            written += self._save_files(directory)
            if settings is not None:
                written.append(os.path.join(directory, TOKENIZER_CONFIG))
                write_json(written[-1], settings)
        return tuple(written)

    def _save_files(self, directory):
        return (self.save_vocabulary(directory),)

    def _settings(self):
        """The content of tokenizer_config.json, or None not to write it."""
        return {} if self.max_len == UNLIMITED else {'max_len': self.max_len}

    def to_library(self):
        """The tokenizer in the library `tokenizers`, for a ``tokenizer.json``.

        It adds the same special tokens around texts, and keeps one in a text whole. Characters may
        be cut differently where the library's Unicode tables differ.

        Returns
        -------
        tokenizers.Tokenizer
        """
        rust = self._to_library()
        special = sorted({token for token in self._library_tokens() if token is not None})
        rust.add_special_tokens(list(map(self._library_token, special)))
        if any(self.template):
            rust.post_processor = self._template_processing()
        return rust

    def _to_library(self):
        raise InputError(f'a {type(self).__name__} cannot be written as a tokenizer.json')

    def _library_token(self, token):
        """A token that stays whole, in the library's form."""
        return token

    def _library_tokens(self):
        """Tokens that stay whole in a text."""
        return self._roles().values()

    def _template_processing(self):
        before, between, after = ([self._roles()[role] for role in part] for part in self.template)
        kind = self.pair_type
        return processors.TemplateProcessing(
            single=[*before, '$A', *after],
            pair=[*before, '$A', *between, f'$B:{kind}', *(f'{token}:{kind}' for token in after)],
            special_tokens=[
                (token, self._id_of(token)) for token in {*before, *between, *after}
            ],
        )
