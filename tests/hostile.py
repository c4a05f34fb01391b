"""Strategies for hypothesis: damaged files, texts that programs have trouble with, wrong values."""

import copy
import json
import os

import hypothesis
from hypothesis import strategies as st

_NUMBERS = [-1, 0, 1, 7, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**64 - 1]
_PIECES = [
    *'\0\ud800\udfff\ufeff\uffff\u202e\u200d\u2028\x85\x1c\r\n\t \xa0\u3000\u0345\u0130\xdf\u01c5',
    *'\u6771\U00020000\U0010ffff\u2581\u0120\\.,',
    *'e\u0301 \U0001f468\u200d\U0001f469 \u1100\u1161 \u0627\u0644'.split(),
    *'[CLS] [MASK] <s> </s> <|endoftext|> <unk> ##s </w> @-@ %s {0} \'" <b>&amp; Paris.'.split(),
    '\u0301' * 40,
    'the cat',
]


#: how many times as many examples are drawn, others each time (`--hypothesis-seed` repeats them)
TIMES = int(os.environ.get('ZOO_TEST_EXAMPLES', 0))


def quick(count):
    """Return settings with which a test draws the same `count` examples each time."""
    return hypothesis.settings(
        max_examples=count * max(1, TIMES),
        deadline=None,
        derandomize=not TIMES,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


#: texts, among them long words and long runs of one character
texts = st.one_of(
    st.lists(st.one_of(st.sampled_from(_PIECES), st.characters()), max_size=30).map(''.join),
    st.builds(str.__mul__, st.sampled_from(_PIECES), st.sampled_from([300, 3000])),
)


@st.composite
def damaged_bytes(draw, content):
    """Draw `content` cut off, with flipped bits, a hole, another number, or more bytes."""
    place = draw(st.integers(0, len(content) - 1))
    kind = draw(st.sampled_from(['cut', 'flip', 'hole', 'number', 'more', 'less']))
    if kind == 'cut':
        return content[:place]
    if kind == 'less':
        return content[:place] + content[place + draw(st.integers(1, 100)) :]
    if kind == 'more':
        return content[:place] + draw(st.binary(min_size=1, max_size=9)) + content[place:]
    made = bytearray(content)
    if kind == 'hole':
        made[place : place + 64] = bytes(len(made[place : place + 64]))
    elif kind == 'number':
        size = draw(st.sampled_from([2, 4, 8]))
        number = draw(st.sampled_from(_NUMBERS)) % (1 << 8 * size)
        made[place : place + size] = number.to_bytes(size, 'little')[: len(made) - place]
    else:
        for _ in range(draw(st.integers(1, 4))):
            made[draw(st.integers(0, len(made) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(made)


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        yield value, key
        if isinstance(each, (dict, list)):
            yield from _places(each)


@st.composite
def damaged_json(draw, content):
    """Draw `content`, a JSON file, with other values at some places, or other bytes."""
    if draw(st.integers(0, 4)) == 0:
        return draw(damaged_bytes(content))
    value = json.loads(content)
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(value)) or [([0], 0)]
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        other = draw(st.sampled_from(['gone', 'name', 'value']))
        if other == 'gone':
            del holder[key]
        elif other == 'name' and isinstance(holder, dict):
            holder[draw(st.sampled_from(['', 'x', '\ud800', '0']))] = holder.pop(key)
        else:
            holder[key] = copy.deepcopy(draw(wrong(holder[key])))
    return json.dumps(value).encode()


@st.composite
def damaged_lines(draw, content):
    """Draw `content`, a text of lines, with lines or cells changed, or other bytes."""
    if draw(st.integers(0, 3)) == 0:
        return draw(damaged_bytes(content))
    lines = content.split(b'\n')
    place = draw(st.integers(0, len(lines) - 1))
    other = draw(texts).encode('utf-8', draw(st.sampled_from(['replace', 'surrogatepass'])))
    kind = draw(st.sampled_from(['gone', 'twice', 'other', 'cell', 'ends', 'first']))
    if kind == 'gone':
        del lines[place]
    elif kind == 'twice':
        lines.insert(place, lines[place])
    elif kind == 'other':
        lines[place] = other
    elif kind == 'cell':
        separator = draw(st.sampled_from([b'\t', b',', b' ', b'"', b'/']))
        cells = lines[place].split(separator)
        cells[draw(st.integers(0, len(cells) - 1))] = other
        lines[place] = separator.join(cells)
    elif kind == 'first':
        lines.insert(0, draw(st.sampled_from([b'\xef\xbb\xbf', b'', b'\xff\xfe', b'"'])))
    return (draw(st.sampled_from([b'\r\n', b'\r'])) if kind == 'ends' else b'\n').join(lines)


def wrong(value):
    """Return a strategy of values like `value`, or of another type, most of which are wrong."""
    others = [None, True, -1, 0, 0.5, float('nan'), 2**70, '', 'x', '\ud800']
    others += [[], [None], {}, {'a': 1}, [[1], [1, 2]]]
    if isinstance(value, (int, float)):
        others += [value + 1, -value, str(value), value / 2, 1e308, float('inf'), 2**40]
    elif isinstance(value, str):
        others += [value + 'x', value[:-1], '..', '../x', '/etc/passwd', 'a\0b', 'nan']
    elif isinstance(value, list) and value:
        others += [value[:-1], value * 3, [value], [*value[:-1], None]]
    elif isinstance(value, dict) and value:
        others += [dict(list(value.items())[:-1]), {**value, 'x': None}]
    return st.sampled_from(others)
