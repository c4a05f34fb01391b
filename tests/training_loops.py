"""A training loop from numbers and functions, as tests want to name them one by one."""

from model_zoo.training import Checkpoints, Evaluation, Plan, TrainingLoop, Updater


def training_loop(
    block,
    trainer,
    objective,
    loader,
    num_steps,
    schedule=None,
    max_grad_norm=1.0,
    loss_scale=None,
    evaluate=None,
    evaluate_interval=None,
    early_stop=None,
    store=None,
    checkpoint_interval=None,
    config=None,
    callbacks=(),
    workers=None,
    **numbers,
):
    """A `TrainingLoop`; `numbers` are the other ones of its plan."""
    return TrainingLoop(
        Updater(block, trainer, schedule, max_grad_norm, loss_scale),
        objective,
        loader,
        Plan(num_steps, **numbers),
        Evaluation(evaluate, evaluate_interval, early_stop),
        Checkpoints(store, checkpoint_interval, config or {}),
        callbacks,
        workers,
    )
