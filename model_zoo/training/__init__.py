"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

import importlib

_MODULES = {
    'callbacks': ('Callback', 'Profiler', 'ProgressLogger', 'TensorBoardWriter'),
    'checkpoint': ('Checkpoint', 'CheckpointStore', 'TrainingState', 'seed_all'),
    'job': ('Job',),
    'loop': ('DivergedError', 'InterruptGuard', 'Interrupted', 'StopRequested', 'TrainingLoop'),
    'objective': ('Objective', 'mean_over_examples', 'outputs_of', 'predict'),
    'updater': ('HostTrainer', 'LossScale', 'Updater'),
    'workers': ('HorovodWorkers', 'Workers', 'make_workers'),
}
__all__ = sorted(name for names in _MODULES.values() for name in names)


def __getattr__(name):
    """Load the public names, which need MXNet, only when one of them is used."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f'{__name__}.{module}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
