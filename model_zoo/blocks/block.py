"""The base of the families' blocks, and its precision."""

import functools
import inspect

from ..errors import InputError
from ..layers.precision import MixedPrecision, set_precision
from ..util.checks import check_ids, check_range, check_shape
from .files import BlockFiles
from .graphs import BlockMirror

__all__ = ['BlockPrecision', 'INPUT_NAMES', 'ZooBlock']


class BlockPrecision(MixedPrecision):
    """The part of `ZooBlock` that is cast as a whole."""

    def cast(self, dtype):
        """Set the precision of the block and all its parts.

        In ``'float16'`` parameters, activations and results are float16, and the losses float32.
        In ``'bfloat16'`` the matrix products take bfloat16, and all else stays float32. See
        `model_zoo.layers.precision`. The graphs are dropped. Make a Trainer afterwards, with
        ``multi_precision=True`` in float16.

        Parameters
        ----------
        dtype : str, type or numpy.dtype
            ``'float32'``, ``'float16'`` or ``'bfloat16'``; `precision` tells which it is.
        """
        set_precision(self, dtype)


#: names of inputs that programs for transformers use -> ours
INPUT_NAMES = {
    'input_ids': 'words',
    'token_type_ids': 'token_types',
    'attention_mask': 'valid_length',
}


def _with_other_names(call):
    """`call` that takes keyword arguments by the names of `INPUT_NAMES`, too."""
    own = inspect.signature(call).parameters
    names = {other: name for other, name in INPUT_NAMES.items() if name in own}

    @functools.wraps(call)
    def called(self, *args, **kwargs):
        for other in names.keys() & kwargs.keys():
            name = names[other]
            if name in kwargs:
                raise InputError(f'{other} and {name} are the same input: give one of them')
            kwargs[name] = kwargs.pop(other)
        return call(self, *args, **kwargs)

    return called


class ZooBlock(BlockFiles, BlockPrecision, BlockMirror):
    """Base of all models of the zoo and of the task blocks on top of them.

    A block keeps one graph for each combination of inputs (`BlockGraphs`), trains with less memory
    (`BlockMirror`), is cast to other precisions (`BlockPrecision`), and reads and writes files
    (`BlockFiles`). The inputs may also be named ``input_ids``, ``token_type_ids`` and
    ``attention_mask``.

    A subclass has the attribute `config`, and the class attributes below and of those parts.
    """

    #: the family's configuration class
    config_class = None
    #: the zoo's names of the family's models -> fields of the configuration
    architectures = {}
    #: parts of the backbone that pretrained weights may lack; they are then initialized at random
    optional_parts = ()
    #: attribute of the backbone in a task's block, such as 'bert'; None in the backbone itself
    backbone = None
    #: the inputs of an exported graph, unless the user chooses others
    export_inputs = ('words', 'token_types', 'valid_length')
    #: axes of `words`: one more where an example has several texts
    word_axes = 2
    #: the most positions of a text that the block takes; None is any number
    context_length = None
    #: whether ONNX Runtime's optimizer joins the operators of its layers
    fuses_in_onnx = False
    #: whether its ONNX file continues texts as its `generate` does
    generates_in_onnx = False
    #: (regular expression of canonical names, conversion) of what files hold in another shape
    stored_as = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if '__call__' in vars(cls):
            cls.__call__ = _with_other_names(cls.__call__)

    def __init__(self, config, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.config = config.copy()  # other blocks may be made with `config`

    @property
    def base(self):
        """The family's backbone: the block itself, or the part of it that `backbone` names."""
        return getattr(self, self.backbone) if self.backbone else self

    def check_text(self, words, valid_length):
        """Raise InputError if these inputs can't be right.

        Parameters
        ----------
        words : NDArray, (batch, length), or with more axes in front
        valid_length : NDArray, (batch,), or None
        """
        check_shape('words', words, (-1,) * self.word_axes)
        length, limit = words.shape[-1], self.context_length
        if limit is not None and length > limit:
            raise InputError(
                f'words has length {length}, and the position table of this model ends at {limit}: '
                'truncate the text, or split it into windows'
            )
        check_ids('words', words, self.config.embedding_rows)
        if valid_length is not None:
            check_shape('valid_length', valid_length, words.shape[:-1])
            check_range('valid_length', valid_length, 0, length + 1)

    def example_makers(self, batch_size, length, random):
        """Makers of example inputs, to check an exported graph with.

        Parameters
        ----------
        batch_size, length : int
        random : numpy.random.RandomState

        Returns
        -------
        dict of str to callable
            Name of the input -> a function without arguments that makes a NumPy array for it, or
            a list of them; ids and lengths are integers.
        """
        rows = self._example_rows(batch_size)
        return {
            'words': lambda: random.randint(0, self.config.embedding_rows, (*rows, length)),
            'valid_length': lambda: random.randint(1, length + 1, rows),
        }

    def _example_rows(self, batch_size):
        """Shape of the example words, without their length."""
        return (batch_size,) + (2,) * (self.word_axes - 2)
