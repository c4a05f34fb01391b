"""When a training updates, evaluates and saves."""

import dataclasses
import logging
import math
from collections.abc import Callable

from ..batches.loaders import check_positive
from .checkpoint import CheckpointStore, check_same_config

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The numbers of a training.

    Parameters
    ----------
    num_steps : int
        Updates to do.
    accumulate : int
        Batches per update. A multiple of the number of devices, which get them in turn.
    seed : int
        See :func:`seed_all`.
    log_interval : int
        In updates.
    num_epochs : int, optional
        End after this many epochs, if `num_steps` aren't done before. Then the number of their
        batches needn't be known, and some may have none.
    """

    num_steps: int
    accumulate: int = 1
    seed: int = 0
    log_interval: int = 10
    num_epochs: int | None = None

    def __post_init__(self):
        check_positive(
            num_steps=self.num_steps,
            accumulate=self.accumulate,
            log_interval=self.log_interval,
            num_epochs=self.num_epochs,
        )


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How a training is evaluated, and when.

    Parameters
    ----------
    function : callable, optional
        ``function(guard) -> (score, report)``: a finite float (higher is better), and plain JSON
        for the record. It calls ``guard.check()`` now and then, unless guard is None, to let
        Ctrl-C interrupt it. Without a function the last epoch counts as the best.
    interval : int, optional
        Evaluate every so many updates, and after the last one; default: after each epoch, and after
        the last update.
    early_stop : int, optional
        Stop after this many evaluations in a row without a new best score.
    """

    function: Callable | None = None
    interval: int | None = None
    early_stop: int | None = None

    def __post_init__(self):
        check_positive(evaluate_interval=self.interval, early_stop=self.early_stop)


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where and when a training is saved.

    Parameters
    ----------
    store : CheckpointStore, optional
        Gets a checkpoint after each evaluation, and after Ctrl-C.
    interval : int, optional
        Also write one every so many updates.
    config : dict
        Field -> value: what must be the same when the training is resumed.
    sizes : tuple of str
        Fields of `config` that are the size of a worker's batch. Only their products with the
        number of workers must be the same, so that a training resumes on another number.
    numbers : tuple of str
        Fields of `config` that say how many batches an update has, for loaders that draw the
        samples of an update together: these are factors of that product, too.
    totals : tuple of str
        Fields of `config` that say how many updates there are in all. They may change when the
        training is resumed, and with them ``warmup_ratio``, a share of them.
    defaults : dict
        Values of the fields that an earlier version hasn't saved. Fields that this version doesn't
        know are ignored.
    aliases : dict
        Names of fields, by the names that an earlier version has saved them with.
    """

    store: CheckpointStore | None = None
    interval: int | None = None
    config: dict = dataclasses.field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    defaults: dict = dataclasses.field(default_factory=dict)
    aliases: dict = dataclasses.field(default_factory=dict)
    resume_hint: str = 'run the same command with `resume` to continue'

    def __post_init__(self):
        check_positive(checkpoint_interval=self.interval)

    def check(self, saved, current):
        """Raise InputError, naming the fields, unless a training goes on as it began."""
        saved = {self.aliases.get(name, name): value for name, value in saved.items()}
        saved = {**self.defaults, **saved}
        saved = {name: value for name, value in saved.items() if name in current or name == 'np'}
        changed = [name for name in self.totals if saved.get(name) != current.get(name)]
        if changed:
            left_out = {*self.totals, 'warmup_ratio'}
            logger.info(
                'resuming with %s: the learning rate follows the schedule of the new total',
                ', '.join(f'{name} {current.get(name)}, not {saved.get(name)}' for name in changed),
            )
            saved, current = (
                {name: value for name, value in config.items() if name not in left_out}
                for config in (saved, current)
            )
        factors = ['np', *self.numbers] if self.sizes else []
        if any((saved.get(name) or 1) != (current.get(name) or 1) for name in factors):
            saved, current = (self._comparable(config, factors) for config in (saved, current))
        instead = 'leave `resume` out and name another folder to start again'
        check_same_config(saved, current, instead)

    def batches_of(self, config):
        """How many batches each worker has in an update of a configuration, by its `numbers`."""
        return math.prod(config.get(name) or 1 for name in self.numbers)

    def _comparable(self, config, factors):
        """A configuration with the size of an update instead of its factors."""
        workers = config.get('np', 1)
        left_out = {*self.sizes, *factors}
        sizes = {name: config[name] for name in self.sizes if config.get(name) is not None}
        factor = self.batches_of(config) * workers
        return {
            **{name: value for name, value in config.items() if name not in left_out},
            **{' x '.join([name, *factors]): size * factor for name, size in sizes.items()},
        }
