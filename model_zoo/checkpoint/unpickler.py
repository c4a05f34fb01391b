"""A pickle's instructions, carried out within limits.

Python's reader in C gives a pickle of a few bytes gigabytes for its memo, computes the hashes of
nested tuples and sets for minutes, and sets attributes on whatever it finds. The one in Python can
be told not to. It reads a pickled vocabulary of 267,735 words with their counts in 2.5 seconds.
"""

import pickle
import struct

__all__ = ['Limits', 'Unpickler', 'check_keys']

_FREE = 1 << 25  # bytes of memory that any file may take,
_MOST = 32  # and how many for each of its own, beyond texts, bytes and numbers
_ITEM = 64  # bytes of an element of a dict or set
_DEEPEST_TUPLE = 50  # Python computes hashes of tuples recursively
_DEEPEST_MARK = 10000
# Bytes that an instruction of one to five bytes may take. What the others make isn't much larger
# than the instruction is, or it counts where it is made.
_COSTS = {
    pickle.EMPTY_DICT: 72,
    pickle.EMPTY_LIST: 64,
    pickle.EMPTY_SET: 224,
    pickle.FROZENSET: 224,
    pickle.DICT: 72,
    pickle.LIST: 64,
    pickle.PUT: 100,
    pickle.BINPUT: 100,
    pickle.LONG_BINPUT: 100,
    pickle.MEMOIZE: 100,
    pickle.PERSID: 100,
    pickle.BINPERSID: 100,
    pickle.REDUCE: 240,
    pickle.INST: 240,
    pickle.OBJ: 240,
    pickle.NEWOBJ: 240,
    pickle.NEWOBJ_EX: 240,
}
# by their types alone: the hash of other things, or comparing them, may take for ever
_SCALARS = frozenset([str, bytes, int, float, bool, type(None)])
_LARGEST_KEY = 2**61 - 2  # larger numbers may all have the same hash


def check_keys(keys):
    """Raise TypeError unless all keys of a dict, or elements of a set, are scalars; returns them.
    """
    kinds = set(map(type, keys))
    if int in kinds and any(type(key) is int and abs(key) > _LARGEST_KEY for key in keys):
        raise TypeError('a huge number is the key of a dict or element of a set')
    for kind in kinds - _SCALARS:
        raise TypeError(f'a {kind.__name__} is the key of a dict or element of a set')
    return keys


class Limits:
    """What one file may cost: memory in proportion to its size.

    Parameters
    ----------
    size : int
        Of the file, in bytes.
    """

    def __init__(self, size):
        self.size = size
        self.left = _FREE + _MOST * size
        self._tuples = {}  # id -> the tuple, its elements at all depths, its depth

    def spend(self, count):
        """Take `count` bytes of memory."""
        self.left -= count
        if self.left < 0:
            raise ValueError('it makes far more than the file holds')

    def spend_items(self, count):
        """Take the memory of `count` elements of a dict or set."""
        self.spend(_ITEM * count)

    def check_tuple(self, value):
        """Raise ValueError for a tuple of too many elements at all depths; returns it."""
        count, depth = len(value), 1
        for item in value:
            if type(item) is tuple:
                _, inner, below = self._tuples.get(id(item), (item, len(item), 1))
                count, depth = count + inner, max(depth, below + 1)
        if count > _MOST * self.size or depth > _DEEPEST_TUPLE:
            raise ValueError('its tuples are nested too deeply')
        self.spend(8 * len(value) + (40 if depth == 1 else 240))
        if depth > 1:
            self._tuples[id(value)] = value, count, depth
        return value


class Unpickler(pickle._Unpickler):
    """Reads one pickle of a file.

    Parameters
    ----------
    file : file object
        Binary.
    reader : object
        ``find(name)`` gives what a pickle gets for ``'module.name'``, ``find_storage(identity)``
        for a reference to something outside of it, and ``build(instance, state)`` sets the state
        of an instance.
    limits : Limits
    """

    def __init__(self, file, reader, limits):
        super().__init__(file, encoding='latin1')  # Python 2's arrays are such strings
        self._reader, self._limits = reader, limits

    def find_class(self, module, name):
        return self._reader.find(f'{module}.{name}')

    def persistent_load(self, identity):
        return self._reader.find_storage(identity)

    def load_build(self):
        state = self.stack.pop()
        self._reader.build(self.stack[-1], state)

    def load_bytearray8(self):
        (count,) = struct.unpack('<Q', self.read(8))
        if count > self._limits.size:
            raise ValueError(f'{count} bytes in a file of {self._limits.size}')
        self.append(bytearray(self.read(count)))

    def load_mark(self):
        if len(self.metastack) > _DEEPEST_MARK:
            raise ValueError('it is nested too deeply')
        super().load_mark()

    def load_tuple(self):
        items = self.pop_mark()  # which also replaces `append`
        self.append(self._limits.check_tuple(tuple(items)))

    def _last(self, count):
        self.stack[-count:] = [self._limits.check_tuple(tuple(self.stack[-count:]))]

    def load_tuple1(self):
        self._last(1)

    def load_tuple2(self):
        self._last(2)

    def load_tuple3(self):
        self._last(3)

    def load_dict(self):
        check_keys(self.stack[::2])
        super().load_dict()

    def load_setitem(self):
        check_keys(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self):
        check_keys(self.stack[::2])
        super().load_setitems()

    def load_additems(self):
        check_keys(self.stack)
        super().load_additems()

    def load_frozenset(self):
        check_keys(self.stack)
        super().load_frozenset()


def _costly(load, cost):
    def spend_and_load(self):
        limits = self._limits
        limits.left -= cost  # here, as this is done for each instruction
        if limits.left < 0:
            limits.spend(0)
        load(self)

    return spend_and_load


def _instructions():
    """Code of an instruction -> what carries it out."""
    instructions = {
        code: getattr(Unpickler, load.__name__)
        for code, load in pickle._Unpickler.dispatch.items()
    }
    for code, cost in _COSTS.items():
        instructions[code[0]] = _costly(instructions[code[0]], cost)
    return instructions


Unpickler.dispatch = _instructions()
