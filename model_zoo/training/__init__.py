"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

from ..families import names_later

# loaded only when one of them is used, as they need MXNet
_PLACES = {
    '.callbacks': 'Callback Profiler ProgressLogger TensorBoardWriter',
    '.checkpoint': 'Checkpoint CheckpointStore TrainingState seed_all',
    '.job': 'Job',
    '.loop': 'DivergedError InterruptGuard Interrupted StopRequested TrainingLoop',
    '.objective': 'Objective mean_over_examples outputs_of predict',
    '.updater': 'HostTrainer LossScale Updater',
    '.workers': 'HorovodWorkers Workers make_workers',
}
__getattr__, __all__ = names_later(__name__, _PLACES)
