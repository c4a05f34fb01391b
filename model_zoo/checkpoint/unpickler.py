"""A pickle's instructions, carried out within limits.

Python's reader in C gives a pickle of a few bytes gigabytes for its memo, computes the hash of
nested tuples for minutes, and sets attributes on whatever it finds. The one in Python can be told
not to. It reads a pickled vocabulary of 267,735 words with their counts in 2.5 seconds.
"""

import pickle
import struct

__all__ = ['Limits', 'Unpickler']

_MOST = 4  # times the file's size; a file that repeats nothing makes less than it holds
_DEEPEST_TUPLE = 50  # Python computes hashes of tuples recursively


class Limits:
    """What one file may cost: a multiple of its size.

    Parameters
    ----------
    size : int
        Of the file, in bytes.
    """

    def __init__(self, size):
        self.size = size
        self._left = _MOST * size
        self._tuples = {}  # id -> the tuple, its elements at all depths, its depth

    def spend(self, count):
        """Take `count` elements or bytes that the file makes out of what it already had."""
        self._left -= count
        if self._left < 0:
            raise ValueError('it makes far more than the file holds')

    def check_tuple(self, value):
        """Raise ValueError for a tuple of too many elements at all depths; returns it."""
        count, depth = len(value), 1
        for item in value:
            if type(item) is tuple:
                _, inner, below = self._tuples.get(id(item), (item, len(item), 1))
                count, depth = count + inner, max(depth, below + 1)
        if count > _MOST * self.size or depth > _DEEPEST_TUPLE:
            raise ValueError('its tuples are nested too deeply')
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

    dispatch = dict(pickle._Unpickler.dispatch)

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

    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    dispatch[pickle.TUPLE[0]] = load_tuple
    dispatch[pickle.TUPLE1[0]] = load_tuple1
    dispatch[pickle.TUPLE2[0]] = load_tuple2
    dispatch[pickle.TUPLE3[0]] = load_tuple3
