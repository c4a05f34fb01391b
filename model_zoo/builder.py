"""How families of version 0.1 built their models; `opening.build_model` does the work."""

import dataclasses
from typing import Callable, Dict, Tuple

from .opening import build_model
from .pretrained import get_entry
from .registry import Family

__all__ = ['Builder']


@dataclasses.dataclass(frozen=True)
class Builder:
    """Builds the models of a family that registers no `Family`.

    Parameters
    ----------
    block_class : type
        A `ZooBlock`, whose `architectures` has the family's models.
    hparams, always_allowed, adapt
        See `model_zoo.registry.Family`.
    make : callable, optional
        ``make(config, files, lacks, **options) -> (block, may_lack)``. `files` are the
        `model_zoo.pretrained.Files`, or None for a new model; `lacks` the parts that the catalogue
        says the weights lack, or None where they come from a path; `may_lack` begins of names of
        parameters that may be initialized at random. By default ``block_class(config, **options)``,
        and nothing may be lacking.
    options : tuple of str
        Keyword arguments for `make` that aren't hyper-parameters.
    """

    block_class: type
    hparams: Dict[str, Tuple[str, ...]]
    make: Callable = None
    options: Tuple[str, ...] = ()
    always_allowed: Tuple[str, ...] = ('dropout',)
    adapt: Callable = None

    def __call__(self, model, dataset_name=None, pretrained=True, **kwargs):
        """Build `model`; see `model_zoo.get_model` for the arguments.

        Returns
        -------
        (block, vocab)
        """
        options = {name: kwargs.pop(name) for name in self.options if name in kwargs}

        def make(config, files):
            known = files is not None and pretrained is True
            lacks = get_entry(model, dataset_name).lacks if known else None
            return self.make(config, files, lacks, **options)

        family = Family(
            model, self.block_class, {}, None, (), self.hparams, self.always_allowed,
            adapt=self.adapt,
        )  # fmt: skip
        return build_model(
            family, model, dataset_name, pretrained=pretrained, options=options,
            make=self.make and make, **kwargs,
        )  # fmt: skip
