"""The mixin of task blocks: a backbone, and its outputs by name."""

from types import SimpleNamespace

from ..errors import InputError

__all__ = ['TaskMixin']


class TaskMixin:
    """The mixin of task blocks; it goes before their family's block.

    The backbone has `output_names`, the names of its outputs in order.

    Parameters
    ----------
    model : Config or ZooBlock
        A backbone is used as it is and shared; a configuration makes a new one.
    **options
        For the new backbone, such as ``output_attentions=True``.
    """

    #: the family's backbone
    model_class = None
    #: the backbone's options ``use_PART`` -> whether the head needs the part, its `has_PART`
    parts = {}

    def __init__(self, model, prefix=None, params=None, **options):
        is_model = isinstance(model, self.model_class)
        super().__init__(model.config if is_model else model, prefix=prefix, params=params)
        if is_model and options:
            raise InputError(f'{", ".join(options)}: set this where the model is made')
        with self.name_scope():
            if not is_model:
                model = self.model_class(self.config, **{**self.parts, **options})
            setattr(self, self.backbone, model)
        # the same dict, as another owner of the model may prune it
        self.config.pruned_heads = model.config.pruned_heads
        for name, is_needed in self.parts.items():
            if is_needed and not getattr(model, name.replace('use_', 'has_')):
                raise InputError(f'{type(self).__name__} needs a model with {name}=True')

    def encode(self, *inputs, **named):
        """Run the backbone; returns an object with its outputs by name, None for missing ones.

        If the backbone returns the states of all layers, they are `states`, and the first output is
        the last layer's.
        """
        base = self.base
        outputs = base(**dict(zip(base.input_names, inputs)), **named)
        names = base.output_names
        outputs = [outputs] if len(names) == 1 else outputs
        named = {**dict.fromkeys(base.outputs), **dict(zip(names, outputs))}
        if base.output_all_encodings:
            named['states'] = named[names[0]]
            named[names[0]] = named['states'][-1]
        return SimpleNamespace(**named)
