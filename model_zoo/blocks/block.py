"""The base of the families' blocks: graphs for every combination of inputs, and files."""

import mxnet as mx
from mxnet.gluon import HybridBlock
from mxnet.gluon.block import _flatten, _regroup

from ..errors import InputError
from ..layers.cells import MirroredCell
from ..layers.precision import MixedPrecision, precision_name, set_precision
from .files import BlockFiles
from .mirror import MirroredGraph

__all__ = ['ZooBlock']


def _pattern(args):
    return tuple(
        None if arg is None else _pattern(arg) if isinstance(arg, (list, tuple)) else 0
        for arg in args
    )


class ZooBlock(BlockFiles, MixedPrecision, HybridBlock):
    """A HybridBlock that keeps one graph for each combination of optional inputs.

    Gluon's own has a single graph, and refuses a call in which other inputs are None than in the
    first. It also reads and writes the formats of the family's `mappings`.

    A subclass has the attribute `config`, and the class attributes below.
    """

    #: the family's configuration class
    config_class = None
    #: the zoo's names of the family's models -> fields of the configuration
    architectures = {}
    #: parts of the backbone that pretrained weights may lack; they are then initialized at random
    optional_parts = ()
    #: attribute of the backbone in a task's block, such as 'bert'; None in the backbone itself
    backbone = None
    #: how many of the inputs, the first ones, are the text; others are labels and the like
    text_inputs = 3
    #: the inputs of an exported graph, unless the user chooses others
    export_inputs = ('words', 'token_types', 'valid_length')
    #: the most positions of a text that the block takes; None is any number
    context_length = None
    #: (regular expression of canonical names, conversion) of what files hold in another shape
    stored_as = ()
    #: the precisions that the family's operators don't have
    lacks_precisions = ()

    def __init__(self, config, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.config = config.copy()  # other blocks may be made with `config`
        self._graphs = {}
        self._graph_in_use = None
        self._mirrors = False
        self._mirrored = {}  # MirroredGraph by combination of inputs

    # -- graphs ---------------------------------------------------------------------------------

    def _clear_cached_op(self):
        super()._clear_cached_op()
        self._graphs = {}
        self._graph_in_use = None
        self._mirrored = {}

    def _call_cached_op(self, *args):
        pattern = _pattern(args)
        names = ('_cached_graph', '_cached_op', '_cached_op_args', '_in_format', '_out_format')
        if pattern != self._graph_in_use:
            if self._graph_in_use is not None:
                self._graphs[self._graph_in_use] = [getattr(self, name) for name in names]
            fresh = [(), None, [], None, None]
            for name, value in zip(names, self._graphs.get(pattern, fresh)):
                setattr(self, name, value)
            self._graph_in_use = pattern
        if self._mirrors and mx.autograd.is_recording() and mx.autograd.is_training():
            return self._call_mirrored(pattern, args)
        return super()._call_cached_op(*args)

    def mirror(self, active=True):
        """Train with less memory: what the layers compute is computed again when it's needed.

        It takes effect where the block is hybridized. Call
        `model_zoo.blocks.mirror.finish_backward`
        after each ``backward()``, and read or update gradients after that.

        Parameters
        ----------
        active : bool

        Raises
        ------
        InputError
            If the family's layers can't do without what they compute.
        """
        cells = []
        self.apply(lambda part: cells.append(part) if isinstance(part, MirroredCell) else None)
        if not cells:
            raise InputError(f'{type(self).__name__} has no layers that can be mirrored')
        for cell in cells:
            cell.mirrors = active
        self._mirrors = active
        self._clear_cached_op()

    def _call_mirrored(self, pattern, args):
        if self._cached_op is None:
            self._build_cache(*args)
        if pattern not in self._mirrored:
            data, outputs = self._cached_graph
            names = [each.name for each in data]
            parameters = dict(self.collect_params().items())
            self._mirrored[pattern] = MirroredGraph(outputs, names, parameters)
        arrays = [each for each in _flatten(args, 'input')[0] if each is not None]
        return _regroup(self._mirrored[pattern].forward(arrays), self._out_format)

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

        Raises
        ------
        UnknownNameError
            If the data type isn't known.
        InputError
            If the family or this machine can't compute so.
        """
        if precision_name(dtype) in self.lacks_precisions:
            raise InputError(
                f'{type(self).__name__} cannot compute in {precision_name(dtype)}: MXNet has no '
                'such operators; use another precision'
            )
        set_precision(self, dtype)

    def export(self, path, epoch=0, remove_amp_cast=False):
        """Gluon's export of the last call's graph; `export.export_block` chooses, and checks it.

        Parameters
        ----------
        path : str
            Start of the files' names.
        epoch : int
        remove_amp_cast : bool
            Whether to leave out what makes a graph compute in bfloat16.

        Raises
        ------
        InputError
            If the block hasn't run hybridized, or the last call had other inputs than the text,
            such as labels, which would be inputs of the exported graph.
        """
        if not self._cached_graph:
            raise InputError('there is no graph to export: call hybridize(), and then the block')
        if any(each is not None for each in self._graph_in_use[self.text_inputs :]):
            raise InputError(
                "the last call's graph has more inputs than the text, such as labels: call the "
                'block without them before, or use export.export_block'
            )
        super().export(path, epoch, remove_amp_cast)

    def example_makers(self, batch_size, length, random):
        """Makers of the inputs that an exported graph can have, to check one with.

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
        raise NotImplementedError
