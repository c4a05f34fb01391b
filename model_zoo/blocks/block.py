"""The base of the families' blocks, and its precision."""

import copy
import inspect

import mxnet as mx
from mxnet.gluon import HybridBlock

from ..errors import InputError
from ..layers.precision import MixedPrecision, set_precision
from ..util.arrays import check_array
from .graphs import BlockGraphs
from .weights import BlockFiles

__all__ = ['INPUT_NAMES', 'NUM_CHOICES', 'ZooBlock']


#: names of inputs in transformers -> in this project
INPUT_NAMES = {
    'input_ids': 'words',
    'token_type_ids': 'token_types',
    'attention_mask': 'valid_length',
}
#: in `label_inputs`: as many classes as the words have choices
NUM_CHOICES = 'choices'


def _call_with(signature):
    """Make the method that calls a block with the inputs of a signature."""

    def __call__(self, *args, **kwargs):
        for other in INPUT_NAMES.keys() & kwargs.keys():
            kwargs[INPUT_NAMES[other]] = kwargs.pop(other)
        bound = self.call_signature.bind(*args, **kwargs)
        inputs = {**dict.fromkeys(self.input_names), **bound.arguments}
        inputs.update(dict.fromkeys(self.unused_inputs))
        if not isinstance(inputs[self.input_names[0]], mx.sym.Symbol):
            self.check(inputs)  # a graph has no values
            if any(inputs[name] is not None for name in self.label_inputs):
                self.check_labels(inputs)
        return self.run(*inputs.values())

    __call__.__signature__ = signature  # for help and editors
    return __call__


class ZooBlock(BlockFiles, MixedPrecision, BlockGraphs):
    """Base of all models of the zoo and their task blocks.

    A block keeps one graph for each combination of inputs (`BlockGraphs`), can be cast to other
    precisions, and reads and writes files (`BlockFiles`). A subclass has the attribute `config`,
    the class attributes below, and ``hybrid_forward(self, F, words, ...)``, whose parameters are
    the inputs; what follows a ``*`` are Gluon's parameters. A call binds the inputs by position or
    name (also ``input_ids``, ``token_type_ids``, ``attention_mask``), checks them (`check`,
    `check_labels`), and runs the graph (`run`).
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
    #: the inputs in the order of a call; by default the order of `hybrid_forward`
    call_order = None
    #: inputs that are accepted and left out, so that all blocks have the same calls
    unused_inputs = ()
    #: name of an input with labels -> (how many of the words' axes it has; the number of its
    #: classes, the field that has this number, or `NUM_CHOICES`; None for numbers, maybe in a
    #: column)
    label_inputs = {}
    #: number of a classifier's outputs
    num_labels = None
    #: whether all labels are given, or none
    labels_together = True
    #: axes of `words`: one more where an example has several texts
    word_axes = 2
    #: the most positions of a text that the block takes; None is any number
    context_length = None
    #: whether ONNX Runtime's optimizer joins the operators of its layers
    fuses_in_onnx = False
    #: in tokens: up to this length texts have a graph of their own, traced in `for_short_texts()`
    short_length = 0
    #: whether its ONNX file continues texts as its `generate` does
    generates_in_onnx = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if not vars(cls).keys() & {'hybrid_forward', 'call_order'}:
            return
        first, _, *others = inspect.signature(cls.hybrid_forward).parameters.values()
        known = {each.name: each for each in others if each.kind is not each.KEYWORD_ONLY}
        cls.input_names = tuple(known)
        order = [known[name] for name in cls.call_order or known]
        cls.call_signature = inspect.Signature(order)
        if '__call__' not in vars(cls):
            cls.__call__ = _call_with(inspect.Signature([first, *order]))

    def __init__(self, config, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.config = copy.deepcopy(config)  # the caller may make other blocks with it

    def __repr__(self):
        config = self.config
        layers, tokens = config.num_layers, config.embedding_rows
        sizes = f'{layers} layers, {config.units} units, {config.num_heads} heads, {tokens} tokens'
        return f'{type(self).__name__}({sizes}, {self.precision})'

    def run(self, *inputs):
        """Run the graph on checked inputs, in the order of `hybrid_forward`."""
        return HybridBlock.__call__(self, *inputs)

    def cast(self, dtype):
        """Set the precision of the block and all its parts: float32, float16 or bfloat16.

        In ``'float16'`` parameters, activations and results are float16, and the losses float32.
        In ``'bfloat16'`` the matrix products take bfloat16, and the rest stays float32. The graphs
        are dropped. Create a Trainer afterwards, with ``multi_precision=True`` for float16.
        """
        set_precision(self, dtype)

    @property
    def base(self):
        """The family's backbone: the block itself, or its part that `backbone` names."""
        return getattr(self, self.backbone) if self.backbone else self

    @property
    def label_names(self):
        """Names of a classifier's outputs in their order: the configuration's ``id2label``, else
        LABEL_0 and so on; empty for other blocks.
        """
        names = self.config.extras.get('id2label') or {}
        count = self.num_labels or len(names)
        return [str(names.get(str(number), f'LABEL_{number}')) for number in range(count)]

    def check(self, inputs):
        """Raise InputError if the inputs are invalid."""
        if 'words' in inputs:
            self.check_text(inputs['words'], inputs.get('valid_length'))

    def check_text(self, words, valid_length=None, axes=None, before=0):
        """Raise InputError if words or their lengths are invalid.

        The words are ids with `axes` axes, by default `word_axes`. Positions `before` them count
        for the context, too; None if the caller passes positions.
        """
        shape = (-1,) * (axes or self.word_axes)
        check_array('words', words, shape, 0, self.config.embedding_rows)
        length, limit = words.shape[-1], self.context_length
        if None not in (before, limit) and before + length > limit:
            raise InputError(
                f'words have {before + length} positions, and this model takes {limit}: truncate '
                'the text, or split it into windows'
            )
        if valid_length is not None:
            check_array('valid_length', valid_length, words.shape[:-1], 0, length + 1)

    def check_labels(self, inputs):
        """Raise InputError if the inputs of `label_inputs` are invalid."""
        given = [name for name in self.label_inputs if inputs[name] is not None]
        if self.labels_together and 0 < len(given) < len(self.label_inputs):
            raise InputError(f'pass both {" and ".join(self.label_inputs)}, or neither')
        for name in given:
            labels, (axes, size) = inputs[name], self.label_inputs[name]
            words, positions = inputs['words'], inputs.get('masked_positions')
            shape = (words if positions is None else positions).shape[:axes]
            if size is None:
                column = getattr(labels, 'shape', None) == (*shape, 1)
                check_array(name, labels, (*shape, 1) if column else shape)
                continue
            if isinstance(size, str):
                size = words.shape[1] if size == NUM_CHOICES else getattr(self.config, size)
            check_array(name, labels, shape, -1, size)

    def example_makers(self, batch_size, length, random):
        """Return the functions that make example inputs, to check an exported graph.

        Each input's name has a function without arguments that makes a NumPy array for it, or a
        list of them; ids and lengths are integers.
        """
        rows = self._example_rows(batch_size)
        return {
            'words': lambda: random.randint(0, self.config.embedding_rows, (*rows, length)),
            'valid_length': lambda: random.randint(1, length + 1, rows),
        }

    def _example_rows(self, batch_size):
        """Return the shape of the example words, without their length."""
        return (batch_size,) + (2,) * (self.word_axes - 2)
