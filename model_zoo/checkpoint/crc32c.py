"""CRC-32C (Castagnoli), the checksum of TensorFlow's files, with NumPy.

The bytes are cut into lanes of the same length, whose remainders are computed side by side, 8 bytes
at a time. The remainders are then joined two by two: that of a lane with n bytes behind it is
multiplied by x^(8n), which is a product with a 32x32 matrix of bits.
"""

import functools

import numpy as np

__all__ = ['crc32c']

_POLYNOMIAL = 0x82F63B78  # with its bits reversed, as all remainders are here
_BLOCK = 1 << 22  # bytes that are computed at a time
_FEW = 256  # bytes that are quicker one by one
_ONES = 0xFFFFFFFF


def crc32c(data, masked=False):
    """The checksum of bytes.

    Parameters
    ----------
    data : bytes-like
    masked : bool
        As TensorFlow stores it: turned, and with a constant added.

    Returns
    -------
    int
    """
    crc = _ONES
    if len(data) <= _FEW:
        single = _single()
        for byte in bytes(data):
            crc = crc >> 8 ^ single[(crc ^ byte) & 255]
    else:
        data = np.frombuffer(data, np.uint8)
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK]
            crc = _shift(crc, len(block)) ^ _remainder(block)
    crc ^= _ONES
    if masked:
        crc = ((crc >> 15 | crc << 17) + 0xA282EAD8) & _ONES
    return crc


def _divide(remainder, steps):
    for _ in range(steps):
        remainder = remainder >> 1 ^ (_POLYNOMIAL if remainder & 1 else 0)
    return remainder


@functools.lru_cache(maxsize=None)
def _single():
    """Remainders of one byte."""
    return [_divide(byte, 8) for byte in range(256)]


@functools.lru_cache(maxsize=None)
def _tables():
    """Remainders of 16 bits with 6, 4, 2 and 0 bytes behind them."""
    single = np.array(_single(), np.uint32)
    tables = [single]
    for _ in range(7):
        tables.append(tables[-1] >> 8 ^ single[tables[-1] & 255])
    pairs = np.arange(1 << 16)
    return [tables[n + 1][pairs & 255] ^ tables[n][pairs >> 8] for n in (6, 4, 2, 0)]


def _remainder(block):
    """The remainder of up to `_BLOCK` bytes, from 0 on."""
    words = -(-len(block) // 8)
    power = (words - 1).bit_length()
    lanes, steps = 1 << power - power // 2, 1 << power // 2
    padded = np.zeros(lanes * steps * 8, np.uint8)
    padded[len(padded) - len(block) :] = block  # zeros before it change nothing
    columns = np.ascontiguousarray(padded.view('<u8').reshape(lanes, steps).T)
    tables, crc = _tables(), np.zeros(lanes, '<u4')
    for column in columns:
        column.view('<u4')[::2] ^= crc
        parts = column.view('<u2').reshape(lanes, 4)
        crc = tables[0][parts[:, 0]]
        for place in (1, 2, 3):
            crc ^= tables[place][parts[:, place]]
    power = power // 2 + 3  # a lane has 2**power bytes
    while len(crc) > 1:
        bits = crc[::2, None] >> np.arange(32, dtype=np.uint32) & 1
        matrix = np.array(_zeros(power), np.uint32)
        crc, power = np.bitwise_xor.reduce(bits * matrix, axis=1) ^ crc[1::2], power + 1
    return int(crc[0])


def _shift(crc, count):
    """A remainder, as if `count` zero bytes followed."""
    for power in range(count.bit_length()):
        if count >> power & 1:
            crc = _multiply(_zeros(power), crc)
    return crc


@functools.lru_cache(maxsize=None)
def _zeros(power):
    """The columns of the matrix for 2**power zero bytes."""
    if power:
        half = _zeros(power - 1)
        return [_multiply(half, column) for column in half]
    return [_divide(1 << bit, 8) for bit in range(32)]


def _multiply(matrix, vector):
    result = 0
    for bit, column in enumerate(matrix):
        if vector >> bit & 1:
            result ^= column
    return result
