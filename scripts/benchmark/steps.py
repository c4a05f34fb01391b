"""A step of training, forward, backward, clipping by the norm and update, of Gluon and of torch."""

import itertools


def our_update(block, optimizer, options):
    """A function that updates a block by its gradients, as our scripts do."""
    import mxnet as mx

    from model_zoo.training import Updater, Workers  # and registers our optimizers

    trainer = mx.gluon.Trainer(
        block.collect_params(), optimizer, dict(options), update_on_kvstore=False
    )
    updater, workers, numbers = Updater(block, trainer), Workers(), itertools.count(1)
    return lambda: updater.update(next(numbers), workers)


def gluon_step(compute, update):
    """A step that waits for its end; `compute` gives the loss."""
    import mxnet as mx

    def step():
        with mx.autograd.record():
            loss = compute()
        loss.backward()
        update()
        mx.nd.waitall()

    return step


def torch_step(model, optimizer, compute):
    """The same of torch."""
    import torch

    def step():
        compute().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()

    return step
