"""The mapping engine: a table of rules between our parameters' names and another program's.

A rule is data, so that one table serves loading and saving.
"""

import dataclasses
import logging
import re

import numpy as np

from ..errors import CheckpointError

_log = logging.getLogger(__name__)


class _Same:
    """The unchanged tensor."""

    def load(self, arrays, config):
        return arrays[0]

    def save(self, array, config):
        return [array]


_SAME = _Same()


class Fused:
    """Query, key and value tensors <-> our fused one, laid out by head (see `SelfAttention`)."""

    def load(self, arrays, config):
        rows = [array.reshape((-1, config.head_size, *array.shape[1:])) for array in arrays]
        return np.concatenate(rows, axis=1).reshape((-1, *arrays[0].shape[1:]))

    def save(self, array, config):
        rows = array.reshape((-1, 3, config.head_size, *array.shape[1:]))
        return [rows[:, part].reshape((-1, *array.shape[1:])) for part in range(3)]


_FUSED = Fused()


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

        array = arrays[0]
        if array.ndim <= self.axis:
            return array  # the block refuses its shape
        widths = [(0, 0)] * array.ndim
        size = array.shape[self.axis]
        widths[self.axis] = (0, padded_units(size) - size)
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
        Our name of the parameter; ``{i}`` stands for a layer's number.
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


def padding_of(name):
    """Return the `Padded` of a parameter in a `FeedForward`, by our name, or None."""
    if name.endswith(('ffn_1.weight', 'ffn_1.bias')):
        return Padded(0)
    return Padded(1) if name.endswith('ffn_2.weight') else None


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
            convert = qkv if ours.endswith('qkv') else padding_of(name) or _SAME
            if kind == 'weight' and weight is not None:
                convert = weight(convert)
            rules.append(Rule(name, tuple(f'{stem}{end}' for stem in theirs), convert))
    return rules


# prefixes of PyTorch's DataParallel, Lightning and torch.compile
_WRAPPERS = ('module.', 'model.', '_orig_mod.')


def wrapper_of(names):
    """Find the wrappers' prefix of most of the names, such as ``module.``."""
    prefix, is_longer = '', True
    while is_longer:
        counts = {part: sum(n.startswith(prefix + part) for n in names) for part in _WRAPPERS}
        part = max(counts, key=counts.get)
        is_longer = 2 * counts[part] > len(names)
        prefix += part if is_longer else ''
    return prefix


def _pattern(template):
    return re.compile(re.escape(template).replace(r'\{i\}', r'(\d+)') + '$')


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
        The names in order, for a format that stores numbers instead of names. A layer's names,
        with ``{i}``, come last and are repeated for each layer.
    """

    def __init__(
        self, rules, backbone, mark_heads=True, outside=(), ignore=(), rename=(), order=()
    ):
        self.rules = list(rules)
        self.backbone = backbone
        self.mark_heads = mark_heads
        self.outside = tuple(outside)
        self._order = tuple(order)
        self._ignore = [re.compile(expression) for expression in ignore]
        self._rename = [(re.compile(expression), to) for expression, to in rename]
        self._ours = [(rule, _pattern(rule.ours)) for rule in self.rules]
        self._theirs = [
            (rule, part, _pattern(name))
            for rule in self.rules
            for part, name in enumerate(rule.theirs)
        ]
        self._tied = {name: rule.theirs[0] for rule in self.rules for name in rule.tied}

    def canonical(self, names):
        """Map all `names` of a file to the names that the rules use.

        Names to ignore are left out. So are further names of tied tensors, unless the first one is
        missing: a program that stores a tied tensor once may use any of its names.
        """
        numbered, wrapper = self._numbered(len(names)), wrapper_of(names)
        has_prefix = any(name.removeprefix(wrapper).startswith(self.backbone) for name in names)
        result, tied = {}, {}
        for name in names:
            new = numbered.get(name, name).removeprefix(wrapper)
            for expression, to in self._rename:
                new = expression.sub(to, new)
            if new.startswith(self.backbone):
                new = new[len(self.backbone) :]
            elif has_prefix and self.mark_heads:
                new = '^' + new
            if new in self._tied:
                tied[self._tied[new]] = name
            elif not any(expression.match(new) for expression in self._ignore):
                result[name] = new
        for new, name in tied.items():
            if new not in result.values():
                result[name] = new
        return result

    def _check_tied(self, tensors, canonical):
        """Warn of tensors that differ from the tied ones that our blocks use instead."""
        wrapper, used = wrapper_of(tensors), {new: name for name, new in canonical.items()}
        for name, array in tensors.items():
            bare = name.removeprefix(wrapper)
            first = used.get(self._tied.get(bare.removeprefix(self.backbone)))
            if first not in (None, name) and not np.array_equal(array, tensors[first]):
                _log.warning(
                    '%s differs from %s, which is used for both: the program that wrote them gives '
                    'other results',
                    name,
                    first,
                )

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
        return sum(
            any(pattern.match(name) for _, _, pattern in self._theirs)
            for name in self.canonical(names).values()
        )

    def load(self, tensors, config):
        """Convert a file's tensors to our tensors; returns these, and the unusable names.

        No rule knows an unusable name, or its rule lacks a part.
        """
        parts_of, unknown = {}, []
        numbered = self._numbered(len(tensors))
        tensors = {numbered.get(name, name): array for name, array in tensors.items()}
        wrapper, names = wrapper_of(tensors), self.canonical(tensors)
        if wrapper:
            _log.info('the names of the weights are read without %r', wrapper)
        self._check_tied(tensors, names)
        for name, canonical in names.items():
            for rule, part, pattern in self._theirs:
                match = pattern.match(canonical)
                if match:
                    ours = rule.ours.replace('{i}', match.group(1) if match.groups() else '')
                    parts_of.setdefault((ours, rule), {})[part] = name
                    break
            else:
                unknown.append(name)
        result = {}
        for (ours, rule), parts in parts_of.items():
            if len(parts) == len(rule.theirs):
                names = [parts[part] for part in range(len(parts))]
                arrays = [tensors[name] for name in names]
                result[ours] = self._convert(rule, arrays, names, config)
            else:
                unknown += parts.values()
        return result, unknown

    @staticmethod
    def _convert(rule, arrays, names, config):
        try:
            return rule.convert.load(arrays, config)
        except ValueError as error:
            shapes = ', '.join(f'{name} {array.shape}' for name, array in zip(names, arrays))
            raise CheckpointError(
                f'tensors of the wrong shape: {shapes}; does the configuration belong to these '
                'weights?'
            ) from error

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
        return self._in_order(result) if self._order else result

    def parts(self, parameters, with_prefix):
        """Yield each of our names, its conversion, and the other program's names -> parts' numbers.

        If no rule knows our name, the conversion is None and there are no names.
        """
        with_prefix = with_prefix or self._has_outside(parameters)
        for ours in parameters:
            rule, layer = self._rule(ours)
            if rule is None:
                yield ours, None, {}
                continue
            numbered = [*enumerate(rule.theirs)]
            if rule.tied_to in parameters:
                numbered += [(0, name) for name in rule.tied]
            names = {self._full(name, layer, with_prefix): number for number, name in numbered}
            yield ours, rule.convert, names

    def _rule(self, ours):
        """Find the rule for one of our names, and the layer's number in it."""
        for rule, pattern in self._ours:
            match = pattern.match(ours)
            if match:
                return rule, match.group(1) if match.groups() else ''
        return None, ''

    def _full(self, name, layer, with_prefix):
        """Return a rule's name as it is in a file."""
        name = name.replace('{i}', layer)
        if name.startswith('^'):
            return name[1:]
        if with_prefix and not name.startswith(self.outside):
            return self.backbone + name
        return name

    def _in_order(self, tensors):
        """Put `tensors` into the order of a format that stores no names."""
        names = list(self._numbered(len(tensors)).values())
        if sorted(names) != sorted(tensors):
            some = ', '.join(list(tensors)[-20:])
            raise CheckpointError(
                'this format stores the tensors of a whole backbone in their order, and not these '
                f'{len(tensors)}: ..., {some}'
            )
        return {name: tensors[name] for name in names}

    def _has_outside(self, tensors):
        """Return whether the other program keeps some of `tensors` outside of the backbone."""
        return any(
            pattern.match(ours)
            for rule, pattern in self._ours
            if rule.theirs[0].startswith(self.outside)
            for ours in tensors
        )
