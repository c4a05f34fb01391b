"""The catalogue of pretrained weights, as data.

Each family registers its entries, which its package's ``models.json`` holds.
"""

import dataclasses
import fnmatch
import glob
import os

from ..errors import InputError, UnknownNameError
from ..families import load_families


@dataclasses.dataclass(frozen=True)
class PackageFiles:
    """Weights that an installable Python package carries."""

    module: str
    requirement: str
    folder: str
    weights: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class PretrainedEntry:
    """One set of pretrained weights.

    Parameters
    ----------
    model : str
        Name of the model, such as 'bert_12_768_12'.
    dataset : str
        Name of the data set that it was trained on.
    family : str
        Name of the family's package.
    do_lower_case : bool
        Whether its tokenizer lowers the text.
    default : bool
        Whether it is used when the model is named without a data set.
    dataset_aliases : tuple of str
        Other names of the data set.
    names : tuple of str
        Names of model and data set in one, such as 'bert-base-uncased'.
    vocab : str, optional
        Name of the vocabulary in GluonNLP's repository; by default the data set's.
    lacks : tuple of str
        Which of 'pooler', 'decoder' and 'classifier' the weights don't have.
    package : PackageFiles, optional
        The Python package that carries the weights.
    hub : str, optional
        Id of the weights on the Hugging Face hub.
    labels : tuple of str, optional
        Of a classifier: what its outputs mean, in their order.
    hub_revision : str, optional
        The commit there that is taken; by default what its branch 'main' is.
    hub_sha256 : str, optional
        Of the file of weights there, which is then checked.
    """

    model: str
    dataset: str
    family: str
    do_lower_case: bool
    default: bool = False
    dataset_aliases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    vocab: str | None = None
    lacks: tuple[str, ...] = ()
    package: PackageFiles | None = None
    hub: str | None = None
    labels: tuple[str, ...] | None = None
    hub_revision: str | None = None
    hub_sha256: str | None = None

    @property
    def full_name(self):
        """Model and data set in one, as GluonNLP's repository names its files."""
        return f'{self.model}_{self.dataset}'


_ENTRIES = {}  # (model, data set) -> entry, in the order of their registration


def register_pretrained(*entries):
    """Add `entries` (:class:`PretrainedEntry`) to the catalogue."""
    _ENTRIES.update({(entry.model, entry.dataset): entry for entry in entries})


def register_weights(family, model, weights):
    """Add a model's entries, a dict of data sets and the fields of `PretrainedEntry`."""
    for dataset, fields in weights.items():
        fields = {n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()}
        if 'package' in fields:
            fields['package'] = PackageFiles(**fields['package'])
        register_pretrained(PretrainedEntry(model, dataset, family, **fields))


def list_pretrained(pattern=None):
    """Return the catalogue's entries, sorted by model and with each model's default data set first.

    Parameters
    ----------
    pattern : str, optional
        Keeps the models with a matching name, such as ``'bert_*'``.
    """
    load_families()  # they register their entries
    entries = [e for e in _ENTRIES.values() if pattern is None or fnmatch.fnmatch(e.model, pattern)]
    return sorted(entries, key=lambda e: (e.model, not e.default, e.dataset))


def get_entry(model, dataset=None):
    """Return the entry of `model` and `dataset`."""
    entries = list_pretrained()
    UnknownNameError.check('pretrained model', model, {entry.model for entry in entries})
    of_model = [entry for entry in entries if entry.model == model]
    for entry in of_model:
        if entry.default if dataset is None else dataset in (entry.dataset, *entry.dataset_aliases):
            return entry
    known = [entry.dataset for entry in of_model]
    if dataset is None:
        raise InputError(f'{model} has no default data set; name one of: {", ".join(known)}')
    raise UnknownNameError.of(f'data set of {model}', dataset, known)


def resolve_alias(name):
    """Split a name of pretrained weights into model and data set.

    Parameters
    ----------
    name : str
        A name of the originals or of the hub ('bert-base-uncased'); a model
        ('bert_12_768_12', which means its default data set); or model and data set joined
        ('bert_12_768_12_book_corpus_wiki_en_cased').
    """
    entries = list_pretrained()
    for entry in entries:
        datasets = (entry.dataset, *entry.dataset_aliases)
        names = [*entry.names, *(f'{entry.model}_{dataset}' for dataset in datasets)]
        if name in names or name == entry.hub or (entry.default and name == entry.model):
            return entry.model, entry.dataset
    if os.path.isfile(name) or os.sep in name:
        what = 'a file, not a folder' if os.path.isfile(name) else 'no such folder'
        raise UnknownNameError(f'{name!r}: {what}, and no name of pretrained weights')
    known = {each for entry in entries for each in (entry.full_name, *entry.names)}
    known |= {entry.model for entry in entries if entry.default}
    known |= {os.path.dirname(path) for path in glob.glob('*/config.json')}
    error = UnknownNameError.of('folder or pretrained model', name, known)
    if '/' not in name:
        error.args = (f'{error}; a model of the hub has its owner before it, as in owner/name',)
    raise error


def is_alias(name):
    """Return whether `resolve_alias` knows `name`."""
    try:
        return bool(resolve_alias(name))
    except UnknownNameError:
        return False


def resolve(name, dataset=None):
    """Do what `resolve_alias` does; a `dataset` wins over the one in `name`.

    The data set is None where `name` means the model's default one.
    """
    model, named = resolve_alias(name)
    if dataset is not None:
        return model, get_entry(model, dataset).dataset
    return model, None if name == model else named
