"""Damage of a file's bytes, lines, JSON and protocol buffers, each drawn from a generator."""

import json
import struct

__all__ = ['NAMES', 'NUMBERS', 'TEXTS', 'damage_bytes', 'damage_json', 'damage_lines',
           'damage_protobuf', 'damage_value', 'varint']  # fmt: skip

#: what numbers of files become
NUMBERS = [
    -1, 0, 1, 2, 3, 7, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**63 - 1, 2**63,
    2**64 - 1, 2**70, -(2**31), -(2**63), 10**9, 10**18, 0.5, -0.5, 1e-30, 1e30, 1e308,
    float('nan'), float('inf'), -float('inf'),
]  # fmt: skip
TEXTS = [
    '', ' ', '\0', 'a\0b', '\ud800', 'x' * 70000, '\u202e', 'e\u0301', '\U0001f600', '..', '/',
    '\n', '\r', '\ufeff', '\x85', '\u2028', '[PAD]', 'nan', '1e400', '-1', '0' * 5000, '9' * 5000,
    '%s%n', '{}', 'null',
]  # fmt: skip
#: what names of files become
NAMES = ['', '.', '..', '../x', '/etc/passwd', 'a\0b', '\ud800', 'x' * 300, 'config.json', 'a/b',
         '/dev/zero', '/proc/self/mem', '\n', '~', 'con:', '-']  # fmt: skip
_PATTERNS = [b'\0', b'\xff', b'\x80', b'\n', b'"', b'[' * 50, b'\xed\xa0\x80', b'\xef\xbb\xbf']
_DEEP = 100000
_DIGITS, _MANY = (200, 400, 5000, 1_500_000), 500_000
_MOST = 1 << 24  # bytes that lines are multiplied to


def damage_bytes(data, rng, times=None, same_length=False):
    """`data` after a few changes."""
    data = bytearray(data)
    for _ in range(times or rng.choice([1, 1, 1, 2, 4, 16])):
        place = rng.randrange(len(data) + 1) if rng.random() < 0.7 else min(
            len(data), rng.randrange(64)
        )
        end = place + rng.choice([1, 2, 4, 8, 100, 5000])
        kind = rng.randrange(5 if same_length else 10)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1 and place < len(data):
            data[place] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind in (2, 3):
            form = rng.choice(['<I', '<Q', '>I', '<H', '<q'])
            size = struct.calcsize(form)
            if place + size <= len(data):
                number = int(rng.choice(NUMBERS[:18])) if kind == 2 else (
                    int.from_bytes(data[place : place + size], 'little') + rng.choice([-1, 1, 8])
                )
                number %= 1 << 8 * size
                data[place : place + size] = struct.pack(form.replace('q', 'Q'), number)
        elif kind == 4:
            count = min(end, len(data)) - place
            data[place : place + count] = bytes([rng.choice([0, 255])]) * count
        elif kind == 5:
            del data[place:]
        elif kind == 6:
            del data[place:end]
        elif kind == 7:
            data[place:place] = rng.choice(_PATTERNS) * rng.choice([1, 1, 3, 1000])
        elif kind == 8:
            data[place:place] = data[place:end]
        else:
            data += bytes(rng.randrange(256) for _ in range(rng.choice([1, 8, 300])))
    return bytes(data)


def damage_lines(data, rng):
    """A text file's lines, or its bytes."""
    if rng.random() < 0.25:
        return damage_bytes(data, rng)
    lines = data.split(b'\n')
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(lines)) if lines else 0
        line = lines[place] if lines else b''
        kind = rng.randrange(9)
        text = rng.choice(TEXTS).encode('utf-8', 'surrogatepass')
        if kind == 0:
            lines[place : place + 1] = []
        elif kind == 1:
            times = min(rng.choice([1, 2, 1000]), 1 + _MOST // (1 + len(line)))
            lines[place:place] = [line] * times
        elif kind == 2:
            lines[place : place + 1] = [text]
        elif kind == 3:
            rng.shuffle(lines)
        elif kind == 4:
            cut = rng.randrange(len(line) + 1)
            lines[place : place + 1] = [line[:cut] + text + line[cut:]]
        elif kind == 5:
            separator = rng.choice([b'\t', b',', b' ', b'"'])
            cells = line.split(separator)
            change = rng.randrange(4)
            if change == 0:
                cells.pop(rng.randrange(len(cells)))
            elif change == 1:
                cells[rng.randrange(len(cells))] = text
            elif change == 2:
                cells *= min(rng.choice([2, 300]), 1 + _MOST // (1 + len(line)))
            else:
                number = rng.choice(NUMBERS)
                cells[rng.randrange(len(cells))] = str(number).encode()
            lines[place : place + 1] = [separator.join(cells)]
        elif kind == 6:
            lines = b'\n'.join(lines).replace(b'\n', rng.choice([b'\r\n', b'\r', b'\n\n'])).split(
                b'\n'
            )
        elif kind == 7:
            lines = lines[: place + 1]
        else:
            lines.insert(0, rng.choice([b'\xef\xbb\xbf', b'', b'\xff\xfe', b'"', b'\x1f\x8b']))
    return b'\n'.join(lines)


def damage_json(data, rng):
    """A JSON file's values, or its text."""
    if rng.random() < 0.2:
        return damage_lines(data, rng)
    text = json.dumps(damage_value(json.loads(data), rng))
    if '"__deep__"' in text:
        brackets = rng.choice(['[]', '{}'])
        start = '{"a":' if brackets == '{}' else '['
        text = text.replace('"__deep__"', f'{start * _DEEP}1{brackets[1] * _DEEP}', 1)
    if '"__digits__"' in text:
        text = text.replace('"__digits__"', rng.choice(['-', '']) + '7' * rng.choice(_DIGITS), 1)
    if '"__many__"' in text:
        text = text.replace('"__many__"', f'[{"1," * _MANY}1]', 1)
    return text.encode('utf-8', 'surrogatepass')


def damage_value(value, rng, times=None):
    """A value of JSON with other ones at some places."""
    for _ in range(times or rng.choice([1, 1, 1, 2, 3])):
        places = list(_places(value))
        if not places:
            return _other(value, rng)
        holder, key = rng.choice(places[:400] if rng.random() < 0.5 else places)
        kind = rng.randrange(8)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict) and rng.random() < 0.1:
            holder.update((f'{key:.20}{number}', number) for number in range(20_000))
        elif kind == 1 and isinstance(holder, dict):
            name = rng.choice([*TEXTS, *map(str, holder)])
            holder[name] = holder.pop(key)
        elif kind == 2 and isinstance(holder, list):
            holder[key:key] = [holder[key]] * rng.choice([1, 2, 500])
        elif kind == 3:
            other, name = rng.choice(places)
            if name in other if isinstance(other, dict) else name < len(other):
                holder[key] = json.loads(json.dumps(other[name]))
        else:
            holder[key] = _other(holder[key], rng)
    return value


def _places(value):
    """(holder, key) of everything below a value."""
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, each in list(items):
        yield value, key
        yield from _places(each)


def _other(value, rng):
    kind = rng.randrange(10)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and kind < 6:
        return rng.choice([value + 1, value - 1, -value, value * 1000, value / 2, str(value),
                           *NUMBERS])  # fmt: skip
    if isinstance(value, str) and kind < 5:
        return rng.choice([value + 'x', value[:-1], value * 2, value.upper(), *TEXTS, *NAMES])
    return rng.choice([
        None, True, False, [], {}, [[]], [value], {'a': value}, [None], '__deep__', '__digits__',
        '__many__',
        *rng.sample(NUMBERS, 5), *rng.sample(TEXTS, 3),
    ])  # fmt: skip


def varint(data, place):
    """The number at a place, and the place behind it."""
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, place
        if shift > 70:
            raise ValueError


def _to_varint(number):
    number %= 1 << 64
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def _fields(data):
    """[(field's number and type, value)] of a message; ValueError or IndexError if it is none."""
    fields, place = [], 0
    while place < len(data):
        key, place = varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, place = data[place : place + size], place + size
        elif kind == 2:
            size, place = varint(data, place)
            value, place = data[place : place + size], place + size
        else:
            raise ValueError
        if place > len(data) or key >> 3 == 0:
            raise ValueError
        fields.append((key, value))
    return fields


def _to_message(fields):
    made = bytearray()
    for key, value in fields:
        made += _to_varint(key)
        if isinstance(value, int):
            made += _to_varint(value)
        else:
            made += (_to_varint(len(value)) if key & 7 == 2 else b'') + value
    return bytes(made)


def damage_protobuf(data, rng, depth=0):
    """A message's fields, at any depth, or its bytes."""
    try:
        fields = _fields(data)
    except (ValueError, IndexError):
        fields = []
    if not fields or rng.random() < 0.1:
        return damage_bytes(data, rng, 1) if data else b'\xff'
    place = rng.randrange(len(fields))
    key, value = fields[place]
    kind = rng.randrange(12)
    if kind == 0:
        del fields[place]
    elif kind == 1:
        fields[place:place] = [fields[place]] * rng.choice([1, 3, 300])
    elif kind == 2:
        fields[place] = (rng.choice([key + 8, key ^ 1, key ^ 2, 10, 2]), value)
        if (fields[place][0] & 7 == 0) != isinstance(value, int):
            fields[place] = (key + 16, value)
    elif kind == 3:
        rng.shuffle(fields)
    elif isinstance(value, int):
        fields[place] = (key, int(rng.choice([value + 1, value - 1, 2 * value, *NUMBERS[:18]])))
    elif key & 7 != 2:
        fields[place] = (key, damage_bytes(value, rng, 1, same_length=True))
    elif kind == 4:
        text = rng.choice(TEXTS + NAMES).encode('utf-8', 'surrogatepass')
        fields[place] = (key, text)
    else:
        fields[place] = (key, damage_protobuf(value, rng, depth + 1))
    return _to_message(fields)
