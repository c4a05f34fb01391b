"""A training loop from numbers and functions, as tests want to name them one by one."""

from model_zoo.training import Job, TrainingLoop, Updater


def training_loop(
    block,
    trainer,
    objective,
    loader,
    num_steps,
    schedule=None,
    max_grad_norm=1.0,
    loss_scale=None,
    config=None,
    **options,
):
    """A `TrainingLoop`, with further options of it."""
    return TrainingLoop(
        Updater(block, trainer, schedule, max_grad_norm, loss_scale),
        objective,
        loader,
        num_steps,
        job=Job(config or {}),
        **options,
    )
