"""The learning-rate schedules of pytorch-pretrained-bert (``optimization.py``) for MXNet.

Each multiplies a base learning rate by a factor that depends on the training's progress,
``step / t_total``. MXNet counts updates from 1 and the originals count steps from 0, so update
``n`` has the learning rate of step ``n - 1`` (see `first_step` for the exception).
"""

import logging
import math

import mxnet as mx

from ..errors import InputError, UnknownNameError
from ..util.choices import SCHEDULE_NAMES

__all__ = [
    'SCHEDULES',
    'ConstantLR',
    'Schedule',
    'WarmupConstantSchedule',
    'WarmupCosineSchedule',
    'WarmupCosineWithHardRestartsSchedule',
    'WarmupCosineWithWarmupRestartsSchedule',
    'WarmupLinearSchedule',
    'finetune_schedule',
    'get_schedule',
]

_LOGGER = logging.getLogger(__name__)


class Schedule(mx.lr_scheduler.LRScheduler):
    """Base of the schedules: a factor for each step, times `base_lr`.

    Parameters
    ----------
    warmup : float
        The fraction of `t_total` in which the learning rate rises linearly from 0, in [0, 1); -1
        means 0.
    t_total : int
        The planned number of updates. With a negative number every schedule is constant, with a
        warning.
    base_lr : float
        The learning rate that the factors multiply. A `learning_rate` that is given to the
        optimizer replaces it.
    first_step : int, optional
        The step whose learning rate the first update has. The default is 0, as in the original
        `BertAdam`; :class:`model_zoo.optimizer.OpenAIAdam` sets it to 1, as in its own original.
    """

    ends = False  # whether training should stop at t_total

    def __init__(self, warmup=0.002, t_total=-1, base_lr=0.001, first_step=None):
        name = type(self).__name__
        super().__init__(base_lr=base_lr)
        if not 0 <= warmup < 1 and warmup != -1:
            raise InputError(f'{name}: warmup must be -1, or from 0 to below 1, not {warmup}')
        self.warmup = float(max(warmup, 0))
        self.t_total = float(t_total)
        self.first_step = first_step
        self._warned = False
        if t_total < 0 and not isinstance(self, ConstantLR):
            _LOGGER.warning('%s: t_total is %s, so the learning rate is constant', name, t_total)

    def __call__(self, num_update):
        """Return the learning rate of MXNet's update `num_update`, counted from 1."""
        return self.base_lr * self.get_lr(max(num_update - 1, 0) + (self.first_step or 0))

    def get_lr(self, step, nowarn=False):
        """Return the factor of the learning rate at `step`, counted from 0.

        After `t_total` it follows the formula. Schedules that have ended then log one warning,
        unless `nowarn`.
        """
        if self.t_total < 0:
            return 1.0
        progress = float(step) / self.t_total
        factor = self.get_lr_(progress)
        if self.ends and progress > 1 and not (nowarn or self._warned):
            self._warned = True
            message = '%s: update %s is past t_total=%d, the learning rate is multiplied by %s'
            _LOGGER.warning(message, type(self).__name__, step, self.t_total, factor)
        return factor

    def get_lr_(self, progress):
        """Return the factor at `progress`, from 0 to 1 and beyond."""
        if progress < self.warmup:
            return progress / self.warmup
        return self.after_warmup(progress)

    def after_warmup(self, progress):
        """Return the factor once `progress` has reached `warmup`."""
        raise NotImplementedError

    def _since_warmup(self, progress):
        """Return `progress` as a fraction of the updates after the warmup."""
        return (progress - self.warmup) / (1 - self.warmup)


class ConstantLR(Schedule):
    """The same learning rate from the first update to the last; ``'none'``.

    Takes the parameters of :class:`Schedule`; `warmup` has no effect.
    """

    def get_lr_(self, progress):
        return 1.0


class WarmupConstantSchedule(Schedule):
    """Linear growth over `warmup`, then constant; ``'warmup_constant'``.

    Takes the parameters of :class:`Schedule`.
    """

    def after_warmup(self, progress):
        return 1.0


class WarmupLinearSchedule(Schedule):
    """Linear growth over `warmup`, then linear decay to 0; ``'warmup_linear'``.

    Takes the parameters of :class:`Schedule`.
    """

    ends = True

    def after_warmup(self, progress):
        return max(0.0, (progress - 1) / (self.warmup - 1))  # 0.0 first, or the end is -0.0


class WarmupCosineSchedule(Schedule):
    """Linear growth over `warmup`, then a cosine; ``'warmup_cosine'``.

    Takes the parameters of :class:`Schedule`, and `cycles`, periods of the cosine; with 0.5 it goes
    down from 1 to 0.
    """

    ends = True

    def __init__(self, warmup=0.002, t_total=-1, cycles=0.5, **kwargs):
        super().__init__(warmup, t_total, **kwargs)
        self.cycles = cycles

    def after_warmup(self, progress):
        return 0.5 * (1 + math.cos(math.pi * self.cycles * 2 * self._since_warmup(progress)))


class WarmupCosineWithHardRestartsSchedule(WarmupCosineSchedule):
    """Linear growth over `warmup`, then `cycles` (at least 1) times a cosine from 1 to 0;
    ``'warmup_cosine_hard_restarts'``.

    Takes the parameters of :class:`Schedule`, and `cycles`.
    """

    def __init__(self, warmup=0.002, t_total=-1, cycles=1.0, **kwargs):
        super().__init__(warmup, t_total, cycles, **kwargs)

    def after_warmup(self, progress):
        return 0.5 * (1 + math.cos(math.pi * (self.cycles * self._since_warmup(progress) % 1)))


class WarmupCosineWithWarmupRestartsSchedule(WarmupCosineWithHardRestartsSchedule):
    """Linear growth, then a cosine from 1 to 0, `cycles` times.

    Its name is ``'warmup_cosine_warmup_restarts'``. Takes the parameters of :class:`Schedule`, and

    Parameters
    ----------
    warmup : float
        The fraction of all updates in which *each* of the cycles rises; ``warmup * cycles`` must be
        below 1.
    cycles : float
        At least 1.
    """

    def __init__(self, warmup=0.002, t_total=-1, cycles=1.0, **kwargs):
        # from here on, warmup is a fraction of its cycle
        super().__init__(warmup * cycles if warmup >= 0 else warmup, t_total, cycles, **kwargs)

    def get_lr_(self, progress):
        return super().get_lr_(progress * self.cycles % 1)

    def after_warmup(self, progress):
        return 0.5 * (1 + math.cos(math.pi * self._since_warmup(progress)))


_WARMUPS = (WarmupConstantSchedule, WarmupLinearSchedule, WarmupCosineSchedule)
_RESTARTS = (WarmupCosineWithHardRestartsSchedule, WarmupCosineWithWarmupRestartsSchedule)
_CLASSES = (ConstantLR, *_WARMUPS, *_RESTARTS)
#: name of a schedule -> its class
SCHEDULES = dict(zip(SCHEDULE_NAMES, _CLASSES, strict=True))


def get_schedule(name, base_lr, warmup=-1, t_total=-1, cycles=None, first_step=None):
    """Make a schedule by its name, a key of `SCHEDULES`; None means ``'none'``.

    See :class:`Schedule` for the other parameters; `cycles` is for the cosine schedules.
    """
    name = 'none' if name is None else name
    UnknownNameError.check('schedule', name, SCHEDULES)
    schedule = SCHEDULES[name]
    options = {'base_lr': base_lr, 'first_step': first_step}
    if cycles is not None:
        options['cycles'] = cycles
    return schedule(warmup, t_total, **options)


def finetune_schedule(base_lr, num_steps, warmup_ratio=0.1, first_step=0):
    """GluonNLP's schedule for fine-tuning: linear up, then linear down to 0 at `num_steps`.

    It is :class:`WarmupLinearSchedule` with a whole number of warmup updates,
    ``int(num_steps * warmup_ratio)``.

    Parameters
    ----------
    num_steps : int
        The number of updates (not batches, if gradients are accumulated).
    warmup_ratio : float
        In [0, 1).
    first_step : int
        GluonNLP's classifier starts at step 0 (the first update has learning rate 0), its SQuAD
        script at step 1 (the last one has).
    """
    warmup = int(num_steps * warmup_ratio) / num_steps
    return WarmupLinearSchedule(warmup, num_steps, base_lr=base_lr, first_step=first_step)
