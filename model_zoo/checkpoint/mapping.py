"""The mapping engine: a table of rules between our parameters' names and another program's.

A rule is data, so that one table serves loading and saving.
"""

import dataclasses
import logging
import re

import numpy as np

from ..errors import CheckpointError

__all__ = ['Fused', 'Mapping', 'OneWide', 'Padded', 'Rule', 'Stacked', 'Transposed', 'layer_rules']

_log = logging.getLogger(__name__)


class _Same:
    """The unchanged tensor."""

    def load(self, arrays, config):
        return arrays[0]

    def save(self, array, config):
        return [array]


class Fused:
    """Query, key and value tensors <-> our fused one, laid out by head (see `SelfAttention`)."""

    def load(self, arrays, config):
        rows = [array.reshape((-1, config.head_size, *array.shape[1:])) for array in arrays]
        return np.concatenate(rows, axis=1).reshape((-1, *arrays[0].shape[1:]))

    def save(self, array, config):
        rows = array.reshape((-1, 3, config.head_size, *array.shape[1:]))
        return [rows[:, part].reshape((-1, *array.shape[1:])) for part in range(3)]


_SAME, _FUSED = _Same(), Fused()


class Stacked:
    """One tensor with all queries' rows first, then all keys' and all values' <-> our fused one."""

    def load(self, arrays, config):
        return _FUSED.load(np.split(arrays[0], 3), config)

    def save(self, array, config):
        return [np.concatenate(_FUSED.save(array, config))]


@dataclasses.dataclass(frozen=True)
class Padded:
    """A tensor without <-> with the zero units of `FeedForward`, along `axis`."""

    axis: int = 0

    def load(self, arrays, config):
        from ..layers.cells import padded_units  # imports MXNet, which a mapping does without

        (array,) = arrays
        if array.ndim <= self.axis:
            return array  # the block refuses its shape
        widths = np.zeros((array.ndim, 2), int)
        size = array.shape[self.axis]
        widths[self.axis, 1] = padded_units(size) - size
        return np.pad(array, widths)

    def save(self, array, config):
        return [np.take(array, range(config.intermediate_size), axis=self.axis)]


@dataclasses.dataclass(frozen=True)
class Transposed:
    """A dense layer's weight (inputs, outputs) <-> our weight (outputs, inputs).

    TensorFlow's ``kernel`` and ``Conv1D`` in the PyTorch files of GPT and GPT-2 are like this.

    Parameters
    ----------
    then : object
        The conversion between the transposed tensors and our tensors, such as ``Padded(0)``.
    """

    then: object = _SAME

    def load(self, arrays, config):
        return self.then.load([array.T for array in arrays], config)

    def save(self, array, config):
        return [array.T for array in self.then.save(array, config)]


@dataclasses.dataclass(frozen=True)
class OneWide:
    """A convolution's weight (1, inputs, outputs) <-> the result of `then` for (inputs, outputs).

    The dense layers of OpenAI's own checkpoints are like this.
    """

    then: object = _SAME

    def load(self, arrays, config):
        return self.then.load([np.squeeze(array, 0) for array in arrays], config)

    def save(self, array, config):
        return [array[None] for array in self.then.save(array, config)]


@dataclasses.dataclass(frozen=True)
class Rule:
    """One line of a mapping.

    Parameters
    ----------
    ours : str
        Our name of the parameter; ``{i}`` stands for a layer's number, or for one of several.
    theirs : str or tuple of str
        The other program's names; several if a conversion joins them.
    convert : object
        An object with ``load(arrays, config)`` -> array and ``save(array, config)`` -> arrays.
    tied : tuple of str
        Further names of the same tensor in their files, without ``{i}``: written on saving, ignored
        on loading.
    tied_to : str
        Write `tied` only where we have the parameter of this name; by default never.
    """

    ours: str
    theirs: tuple[str, ...]
    convert: object = _SAME
    tied: tuple[str, ...] = ()
    tied_to: str = ''

    def __post_init__(self):
        if isinstance(self.theirs, str):
            object.__setattr__(self, 'theirs', (self.theirs,))


#: the end of our name of a parameter in a `FeedForward`, such as 'ffn_1.weight' -> its `Padded`
PADDED = {'ffn_1.weight': Padded(0), 'ffn_1.bias': Padded(0), 'ffn_2.weight': Padded(1)}


def layer_rules(
    layers, dense=('.weight', '.bias'), norm=('.gamma', '.beta'), qkv=_FUSED, weight=None
):
    """Make the rules of layers with two parameters: dense ones and normalizations.

    Parameters
    ----------
    layers : dict of str to str or tuple of str
        Our name of a layer -> the other program's name, or its names of queries, keys and values.
        Our names of normalizations end with ``norm``, our names of fused layers with ``qkv``.
    dense, norm : tuple of str
        The endings of the other program's weights and biases, and of its scales and shifts.
    qkv : object
        The conversion of fused layers.
    weight : callable, optional
        Wraps the conversion of a dense layer's weight, such as `Transposed`.
    """
    rules = []
    for ours, theirs in layers.items():
        theirs = (theirs,) if isinstance(theirs, str) else theirs
        is_norm = ours.endswith('norm')
        endings = ('gamma', 'beta') if is_norm else ('weight', 'bias')
        for kind, end in zip(endings, norm if is_norm else dense):
            name = f'{ours}.{kind}'
            padded = PADDED.get(name.rpartition('.ffn.')[2], _SAME)
            convert = qkv if ours.endswith('qkv') else padded
            if kind == 'weight' and weight is not None:
                convert = weight(convert)
            rules.append(Rule(name, tuple(stem + end for stem in theirs), convert))
    return rules


_CELL = ('attention.qkv', 'attention.proj', 'attention_norm', 'ffn.ffn_1', 'ffn.ffn_2', 'ffn_norm')


def cell_layers(ours, theirs, names):
    """Map the layers of a cell to another program's, for `layer_rules`.

    Parameters
    ----------
    ours, theirs : str
        Beginnings of the names.
    names : str
        The other program's query, key and value, or their fused layer; the attention's output and
        its normalization; the two feed-forward layers and their normalization.
    """
    *qkv, proj, norm, ffn_1, ffn_2, ffn_norm = (theirs + name for name in names.split())
    layers = tuple(qkv), proj, norm, ffn_1, ffn_2, ffn_norm
    return {ours + layer: name for layer, name in zip(_CELL, layers)}


# prefixes of PyTorch's DataParallel, Lightning and torch.compile
_WRAPPERS = ('module.', 'model.', '_orig_mod.')


def wrapper_of(names):
    """Find the wrappers' prefix of most of the names, such as ``module.``."""
    prefix = ''
    while True:
        counts = {part: sum(n.startswith(prefix + part) for n in names) for part in _WRAPPERS}
        part = max(counts, key=counts.get)
        if 2 * counts[part] <= len(names):
            return prefix
        prefix += part


def _pattern(template):
    return re.compile(re.escape(template).replace(r'\{i\}', r'(\d+)'))


def _find(table, name):
    """Return the entry of a table whose pattern a name matches, and the numbers in the name."""
    for entry, pattern in table:
        match = pattern.fullmatch(name)
        if match:
            return entry, match.groups()
    return None, ()


def _numbered(template, numbers):
    """Return the name of a template with these numbers."""
    for number in numbers:
        template = template.replace('{i}', number, 1)
    return template


class Mapping:
    """A reversible table of rules.

    Names of a task's head are marked with ``^``, so that they can't be confused with parameters of
    the backbone with the same name (see `canonical`).

    Parameters
    ----------
    rules : list of Rule
    backbone : str
        Prefix of the backbone's names in a task's file, such as ``'bert.'``.
    mark_heads : bool
        Whether names without that prefix belong to the task's head if others have it. False for
        the Hugging Face files, which keep parts of the backbone outside.
    outside : tuple of str
        Beginnings of names that never get the prefix, if names aren't marked.
    ignore : tuple of str
        Regular expressions for names to ignore, such as stored position ids.
    rename : tuple of (str, str)
        Regular expressions and replacements that turn older names into today's.
    order : tuple of str
        The names in order, for a format that stores numbers instead of names, and is only read. A
        layer's names, with ``{i}``, come last and are repeated for each layer.
    """

    def __init__(
        self, rules, backbone, mark_heads=True, outside=(), ignore=(), rename=(), order=()
    ):
        self.backbone = backbone
        self._mark_heads, self._outside = mark_heads, tuple(outside)
        self._order, self._ignore, self._rename = tuple(order), ignore, rename
        self._ours = [(rule, _pattern(rule.ours)) for rule in rules]
        parts = [(rule, part) for rule in rules for part in range(len(rule.theirs))]
        self._theirs = [((rule, part), _pattern(rule.theirs[part])) for rule, part in parts]
        self._tied = {name: rule.theirs[0] for rule in rules for name in rule.tied}

    def canonical(self, names):
        """Map all `names` of a file to the names that the rules use.

        Names to ignore are left out. So are further names of tied tensors, unless the first one is
        missing: a program that stores a tied tensor once may use any of its names. Returns these
        names, and the names of tied tensors -> their first names.
        """
        numbered, wrapper = self._numbered(len(names)), wrapper_of(names)
        has_prefix = any(name.removeprefix(wrapper).startswith(self.backbone) for name in names)
        result, copies = {}, {}
        for name in names:
            new = numbered.get(name, name).removeprefix(wrapper)
            for expression, to in self._rename:
                new = re.sub(expression, to, new)
            if new.startswith(self.backbone):
                new = new[len(self.backbone) :]
            elif has_prefix and self._mark_heads:
                new = '^' + new
            if new in self._tied:
                copies[name] = self._tied[new]
            elif not any(re.match(expression, new) for expression in self._ignore):
                result[name] = new
        missing = {new: name for name, new in copies.items()}
        for new in result.values():
            missing.pop(new, None)
        return result | {name: new for new, name in missing.items()}, copies

    def _numbered(self, count):
        """Map the numbers of `count` tensors to their names, in a format that stores numbers."""
        first = [name for name in self._order if '{i}' not in name]
        layer = self._order[len(first) :]
        if not layer or (count - len(first)) % len(layer):
            return {}
        layers = range((count - len(first)) // len(layer))
        names = first + [name.replace('{i}', str(i)) for i in layers for name in layer]
        return {str(number): name for number, name in enumerate(names)}

    def matches(self, names):
        """Count the `names` of a file that the rules know."""
        found = (_find(self._theirs, name)[0] for name in self.canonical(names)[0].values())
        return sum(entry is not None for entry in found)

    def load(self, tensors, config):
        """Convert a file's tensors to our tensors; returns these, and the unusable names.

        No rule knows an unusable name, or its rule lacks a part.
        """
        wrapper = wrapper_of(tensors)
        if wrapper:
            _log.info('the names of the weights are read without %r', wrapper)
        names, copies = self.canonical(tensors)
        used = {new: name for name, new in names.items()}
        for name, new in copies.items():
            if not np.array_equal(tensors[name], tensors[used[new]]):
                problem = '%s differs from %s, which is used: the program that wrote them uses both'
                _log.warning(problem, name, used[new])
        parts_of, unknown = {}, []
        for name, new in names.items():
            entry, numbers = _find(self._theirs, new)
            if entry is None:
                unknown.append(name)
                continue
            rule, part = entry
            parts_of.setdefault((_numbered(rule.ours, numbers), rule), {})[part] = name
        result = {}
        for (ours, rule), parts in parts_of.items():
            if len(parts) < len(rule.theirs):
                unknown += parts.values()
                continue
            arrays = {name: tensors[name] for _, name in sorted(parts.items())}
            try:
                result[ours] = rule.convert.load([*arrays.values()], config)
            except ValueError as error:
                shapes = ', '.join(f'{name} {array.shape}' for name, array in arrays.items())
                raise CheckpointError(f'shapes from a different configuration: {shapes}') from error
        return result, unknown

    def save(self, tensors, config, with_prefix):
        """Convert our tensors to the other program's; the inverse of `load`.

        CheckpointError if no rule knows a name: the format has no place for it.
        """
        result = {}
        for ours, convert, parts in self.parts(tensors, with_prefix):
            if convert is None:
                raise CheckpointError(f'this format has no place for the parameter {ours}')
            values = convert.save(tensors[ours], config)
            result.update((name, np.ascontiguousarray(values[n])) for name, n in parts.items())
        return result

    def parts(self, parameters, with_prefix):
        """Yield each of our names, its conversion, and the other program's names -> parts' numbers.

        If no rule knows our name, the conversion is None and there are no names.
        """
        rules = {ours: _find(self._ours, ours) for ours in parameters}
        # some of the parameters may be outside of the backbone
        with_prefix = with_prefix or any(
            rule is not None and rule.theirs[0].startswith(self._outside)
            for rule, _ in rules.values()
        )
        for ours, (rule, numbers) in rules.items():
            if rule is None:
                yield ours, None, {}
                continue
            templates = [*enumerate(rule.theirs)]
            if rule.tied_to in parameters:
                templates += [(0, name) for name in rule.tied]
            names = {}
            for part, template in templates:
                name = _numbered(template, numbers)
                if with_prefix and not name.startswith(('^', *self._outside)):
                    name = self.backbone + name
                names[name.removeprefix('^')] = part
            yield ours, rule.convert, names
