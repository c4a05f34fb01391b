"""A task's block: a family's backbone with a head on top."""

from types import SimpleNamespace

from ..errors import InputError

__all__ = ['TaskMixin']


class TaskMixin:
    """What task blocks inherit besides, and before, their family's block.

    The backbone has `output_names`: of all that it can return what it does return, in its order.

    Parameters
    ----------
    model : Config or ZooBlock
        A backbone is used as it is and shared; a configuration makes a new one.
    **options
        For the new backbone, such as ``output_attentions=True``.
    """

    #: the family's backbone
    model_class = None
    #: options of a new backbone that the head needs
    parts = {}

    def __init__(self, model, prefix=None, params=None, **options):
        is_model = isinstance(model, self.model_class)
        super().__init__(model.config if is_model else model, prefix=prefix, params=params)
        if is_model and options:
            name = self.model_class.__name__
            raise InputError(f'{", ".join(options)}: set this where the {name} is made')
        with self.name_scope():
            if not is_model:
                model = self.model_class(self.config, **{**self.parts, **options})
            setattr(self, self.backbone, model)

    def encode(self, *inputs):
        """Run the backbone: an object with its outputs by name, None for what it doesn't return.

        Where the backbone returns the states of all layers, they are `states`, and the first output
        is the last of them.
        """
        base = self.base
        outputs = base(*inputs)
        names = base.output_names
        outputs = [outputs] if len(names) == 1 else outputs
        named = {**dict.fromkeys(base.outputs), **dict(zip(names, outputs))}
        if base.output_all_encodings:
            named['states'] = named[names[0]]
            named[names[0]] = named['states'][-1]
        return SimpleNamespace(**named)
