"""The job of a run: all that must be the same when it is resumed."""

import dataclasses
import json
import logging
import math
import zlib

import numpy as np

from ..errors import InputError
from ..operators import kernels

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Job:
    """The settings, data and labels that must be the same when a training is resumed.

    Parameters
    ----------
    config : dict
        Field -> value; a checkpoint has them, too.
    sizes : tuple of str
        Fields that are the size of a worker's batch. Only their products with the number of workers
        must be the same, so that a training resumes on another number.
    numbers : tuple of str
        Fields that say how many batches an update has, for loaders that draw the samples of an
        update together: these are factors of that product, too.
    totals : tuple of str
        Fields that say how many updates there are in all. They may change when the training is
        resumed, and with them ``warmup_ratio``, a share of them.
    defaults : dict
        Values of the fields that an earlier version hasn't saved. Fields that this version doesn't
        know are ignored.
    aliases : dict
        Names of fields, by the names that an earlier version has saved them with.
    """

    config: dict = dataclasses.field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    defaults: dict = dataclasses.field(default_factory=dict)
    aliases: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, settings, gpus=1, draws_updates=False, **described):
        """The job of a run's settings.

        Parameters
        ----------
        gpus : int
            The number of devices.
        draws_updates : bool
            Whether the loader draws the samples of an update for all devices together.
        **described
            Further fields, which replace the settings of their names.
        """
        left_out = settings.marked('mutable', 'run')
        flags = {name: value for name, value in vars(settings).items() if name not in left_out}
        if flags.get('batch_tokens') is not None:
            flags['batch_size'] = None  # nothing depends on it
        defaults = {**settings.defaults(), 'gpus': 1, 'class_names': described.get('class_names')}
        return cls(
            {**flags, **described, 'gpus': gpus, 'kernels': kernels()},
            settings.marked('size'),
            (*settings.marked('number'), 'gpus') if draws_updates else (),
            settings.marked('total'),
            defaults,
            settings.aliases(),
        )

    def check(self, saved):
        """Raise InputError, naming the fields, unless a saved configuration is of this job."""
        current = self.config
        old = {self.aliases[name]: saved[name] for name in saved if name in self.aliases}
        saved = {**self.defaults, **old, **saved}
        saved = {name: value for name, value in saved.items() if name in current or name == 'np'}
        computed = saved.pop('kernels', None)
        if computed not in (None, current.get('kernels')):
            problem = 'resuming with %s, not %s: the result may differ'
            logger.info(problem, current['kernels'], computed)
        current = _without(current, {'kernels'})
        changed = [name for name in self.totals if saved.get(name) != current.get(name)]
        if changed:
            left_out = {*self.totals, 'warmup_ratio'}
            shown = [f'{name} {current.get(name)}, not {saved.get(name)}' for name in changed]
            note = 'resuming with %s: the learning rate follows the schedule of the new total'
            logger.info(note, ', '.join(shown))
            saved, current = (_without(config, left_out) for config in (saved, current))
        factors = ['np', *self.numbers] if self.sizes else []
        if any((saved.get(name) or 1) != (current.get(name) or 1) for name in factors):
            saved, current = (self._comparable(config, factors) for config in (saved, current))
        current = json.loads(json.dumps(current))  # tuples have become lists in the file
        names = [n for n in sorted({*saved, *current}) if saved.get(n) != current.get(n)]
        differing = [f'`{n}` is {current.get(n)!r} and was {saved.get(n)!r}' for n in names]
        if differing:
            cure = 'use the same value, or another folder without `resume` to start again'
            raise InputError(f'cannot resume: {"; ".join(differing)}; {cure}')

    def batches_of(self, config):
        """Return the number of a worker's batches in an update, by `numbers` of a configuration."""
        return math.prod(config.get(name) or 1 for name in self.numbers)

    def _comparable(self, config, factors):
        """A configuration with the size of an update instead of its factors."""
        left_out = {*self.sizes, *factors}
        sizes = {name: config[name] for name in self.sizes if config.get(name) is not None}
        factor = self.batches_of(config) * config.get('np', 1)
        products = {' x '.join([name, *factors]): size * factor for name, size in sizes.items()}
        return {**_without(config, left_out), **products}


def _without(config, names):
    return {name: value for name, value in config.items() if name not in names}


def data_checksum(values):
    """Return a checksum by which another run recognizes the same data."""
    checksum = 0
    for value in values:
        content = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        checksum = zlib.crc32(content, checksum)
    return f'{checksum:08x}'


def describe(count, unit, values):
    """Return a text that identifies data: their number, unit and `data_checksum`."""
    return f'{count} {unit} with checksum {data_checksum(values)}'


def describe_vocab(vocab):
    """Return a text that identifies a vocabulary, independent of its file."""
    return describe(len(vocab), 'tokens', vocab.idx_to_token)
