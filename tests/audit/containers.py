"""Damage of files with a structure of their own, whose checksums are made anew where it matters."""

import gzip
import io
import json
import pickle
import pickletools
import re
import struct
import tarfile
import warnings
import zipfile

from damage import NAMES, NUMBERS, TEXTS, damage_bytes, damage_json, damage_protobuf, varint

from model_zoo.checkpoint.tensorflow_file import crc32c

__all__ = ['damage_npy', 'damage_npz', 'damage_pickle', 'damage_safetensors', 'damage_table',
           'damage_tar', 'damage_tfrecord', 'damage_tokenizer', 'damage_torch_stream',
           'damage_torch_zip', 'damage_zip']  # fmt: skip


_DTYPES = [b'F64', b'F32', b'F16', b'BF16', b'F8_E4M3', b'F8_E5M2', b'F4', b'U64', b'I64', b'I32',
           b'I16', b'U16', b'I8', b'U8', b'BOOL', b'C64', b'X']  # fmt: skip


def damage_safetensors(data, rng):
    """The header's entries, its length, or the bytes."""
    if rng.random() < 0.25:
        return damage_bytes(data, rng)
    (size,) = struct.unpack('<Q', data[:8])
    header, rest = data[8 : 8 + size], data[8 + size :]
    if rng.random() < 0.15:
        names = re.findall(rb'"dtype":"(\w+)"', header)
        header = header.replace(rng.choice(names), rng.choice(_DTYPES), rng.choice([1, -1]))
        size = len(header)
    elif rng.random() < 0.8:
        header = damage_json(header, rng)
        size = len(header)
    else:
        size = int(rng.choice([size + 1, size - 1, *NUMBERS[:17]])) % 2**64
    if rng.random() < 0.1:
        rest = damage_bytes(rest, rng)
    return struct.pack('<Q', size) + header + rest


def damage_npy(data, rng):
    """The header's type and shape, or the bytes."""
    if rng.random() < 0.3 or data[:6] != b'\x93NUMPY':
        return damage_bytes(data, rng)
    (size,) = struct.unpack('<H', data[8:10])
    header, rest = data[10 : 10 + size].decode('latin1'), data[10 + size :]
    numbers = [str(rng.choice(NUMBERS)) for _ in range(rng.choice([0, 1, 2, 3, 40]))]
    kind = rng.randrange(5)
    if kind == 0:
        shape = rng.choice([f'({", ".join(numbers)},)', '()', 'None', '((1,),)', '(True,)', '[3]'])
        start = header.index("'shape': ") + len("'shape': ")
        header = header[:start] + shape + ', }'
    elif kind == 1:
        kinds = ['|O', '<f8', '<f2', '>f4', '<c16', '|S1', '<U4', '|V4', '<i8', '|b1', '<M8[s]',
                 '|S0', '<f4000', '', '|V2000000000', '<x4']  # fmt: skip
        start = header.index("'descr': ") + len("'descr': ")
        header = f'{header[:start]}{rng.choice(kinds)!r}{header[header.index(",", start):]}'
    elif kind == 2:
        header = header.replace('False', rng.choice(['True', 'None', '0', '"x"', '-1']))
    elif kind == 3:
        header = '{' + '[' * rng.choice([5, 300, 60000]) + header
    else:
        header = damage_bytes(header.encode('latin1'), rng).decode('latin1')
    header = header.encode('latin1', 'replace')[:65000]
    return data[:8] + struct.pack('<H', len(header)) + header + rest


def damage_zip(data, rng, inner=damage_bytes):
    """An archive's members, their names and forms, or the bytes; checksums are right."""
    if rng.random() < 0.2:
        return damage_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [[info.filename, archive.read(info), info.compress_type, info.external_attr]
                   for info in archive.infolist()]  # fmt: skip
    place = rng.randrange(len(members))
    kind = rng.randrange(10)
    if kind == 0:
        del members[place]
    elif kind == 1:
        members.append(list(members[place]))
    elif kind == 2:
        members[place][0] = rng.choice([*NAMES, members[rng.randrange(len(members))][0]])
    elif kind == 3:
        members[place][2] = zipfile.ZIP_DEFLATED
        members[place][1] += bytes(rng.choice([1, 5000, 30_000_000]))
    elif kind == 4:
        members[place][3] = rng.choice([0o120777, 0o060777, 0o40755, 0o010644]) << 16
    else:
        members[place][1] = inner(members[place][1], rng)
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, 'w') as archive:
        warnings.simplefilter('ignore')  # of a name that is there twice
        for name, content, compression, attributes in members:
            info = zipfile.ZipInfo('x')
            info.filename, info.compress_type = _zip_name(name), compression
            info.external_attr = attributes
            archive.writestr(info, content)
    made = file.getvalue()
    return made.replace(b'QQQQ', b'\xff\xfe\xff\xfe') if b'QQQQ' in made else made


def _zip_name(name):
    try:
        name.encode()
    except UnicodeError:
        return 'QQQQ'  # becomes bytes that are no UTF-8
    return name


def damage_npz(data, rng):
    return damage_zip(data, rng, damage_npy)


def _pickle_or_bytes(data, rng):
    try:
        return damage_pickle(data, rng)
    except Exception:  # another part than the pickle
        return damage_bytes(data, rng)


def damage_torch_zip(data, rng):
    return damage_zip(data, rng, _pickle_or_bytes)


def damage_torch_stream(data, rng):
    """One of the pickles that a stream begins with."""
    file, starts = io.BytesIO(data), [0]
    for _ in range(5):
        for _ in pickletools.genops(file):
            pass
        starts.append(file.tell())
    place = rng.randrange(6)
    if place == 5:
        return data[: starts[5]] + damage_bytes(data[starts[5] :], rng)
    start, end = starts[place : place + 2]
    return data[:start] + damage_pickle(data[start:end], rng) + data[end:]


def _instruction(rng):
    """An instruction of a pickle with its argument."""
    op = rng.choice(pickletools.opcodes)
    code = op.code.encode('latin1')
    number = int(rng.choice(NUMBERS[:21]))
    name = op.arg.name if op.arg else None
    sizes = {'uint1': '<B', 'uint2': '<H', 'int4': '<i', 'uint4': '<I', 'uint8': '<Q',
             'float8': '>d'}  # fmt: skip
    if name is None:
        return code
    if name in sizes:
        size = struct.calcsize(sizes[name])
        return code + (number % (1 << 8 * size)).to_bytes(size, 'little')
    if name == 'stringnl_noescape_pair':
        pair = rng.choice(['os\nsystem', 'builtins\neval', 'numpy\ndtype', 'collections\nCounter',
                           'builtins\nbytearray', 'torch\nSize', 'numpy.core.multiarray\nscalar'])
        return code + pair.encode() + b'\n'
    if name.endswith('nl') or 'nl_' in name:
        text = str(number) if 'decimal' in name or 'float' in name else "'x'"
        return code + text.encode() + b'\n'
    widths = {'1': 1, '4': 4, '8': 8}
    width = widths.get(name[-1], 4)
    text = rng.choice(TEXTS[:12]).encode('utf-8', 'surrogatepass')
    size = len(text) if rng.random() < 0.7 else number
    return code + (size % (1 << 8 * width)).to_bytes(width, 'little') + text


def damage_pickle(data, rng):
    """A pickle's instructions, their arguments, or the bytes."""
    if rng.random() < 0.15:
        return damage_bytes(data, rng)
    if rng.random() < 0.05:
        return _bomb(rng)
    places = [place for _, _, place in pickletools.genops(data)]
    end = places[-1] + 1
    parts = [data[start:stop] for start, stop in zip(places, [*places[1:], end])]
    for _ in range(rng.choice([1, 1, 2, 4])):
        place = rng.randrange(len(parts))
        kind = rng.randrange(7)
        if kind == 0:
            del parts[place]
        elif kind == 1:
            parts[place:place] = [parts[place]] * rng.choice([1, 2, 1000])
        elif kind == 2:
            other = rng.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
        elif kind == 3:
            parts[place] = _instruction(rng)
        elif kind == 4:
            parts[place:place] = [_instruction(rng) for _ in range(rng.choice([1, 3]))]
        elif len(parts[place]) > 1:
            argument = damage_bytes(parts[place][1:], rng, 1, same_length=rng.random() < 0.7)
            parts[place] = parts[place][:1] + argument
        parts = parts or [b'.']
    return b''.join(parts) + data[end:]


def _bomb(rng):
    """A few bytes that ask for much."""
    count = rng.choice([30, 60, 1000, 60000])
    return rng.choice([
        b'\x80\x04)' + b'\x85' * count + b'.',
        b'\x80\x04K\x01' + b'2\x86' * count + b'.',
        b'\x80\x04]\x94' + b'(h\x00h\x00l\x94' * count + b'.',
        b'\x80\x02r\xff\xff\xff\x7f.',
        b'\x80\x04]r\xff\xff\xff\x7f.',
        b'\x80\x05\x96' + struct.pack('<Q', 2**40) + b'.',
        b'\x80\x04\x8d' + struct.pack('<Q', 2**40) + b'x.',
        b'cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.',
        b'cbuiltins\nlist\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRtR.',
        b'L' + b'9' * 50000 + b'L\n.',
        b'\x80\x04' + b']' * count + b'a' * (count - 1) + b'.',
        b'\x80\x04}(' + b'K\x01)' * count + b'u.',
        b'\x80\x04' + rng.choice([b'\x8f', b'}', b'(']) * 8_000_000 + b'.',
        b'\x80\x04}(' + _nested_sets(60, 0) + b'N' + _nested_sets(60, 60) + b'K\x01d.',
        pickle.dumps({'a': [float('nan')] * 10}),
    ])  # fmt: skip


def _nested_sets(count, first):
    """Sets of the one before and of a set with it: to compare two takes 2**count steps."""
    made = b'(\x91'
    for number in range(first, first + count):
        same = b'h' + bytes([number])
        made += b'\x940(' + same + b'(' + same + b'K\x01\x91\x91'
    return made


def damage_tfrecord(data, rng):
    """The messages in the records, or the bytes."""
    if rng.random() < 0.25:
        return damage_bytes(data, rng)
    records, place = [], 0
    while place < len(data):
        (size,) = struct.unpack('<Q', data[place : place + 8])
        records.append(data[place + 12 : place + 12 + size])
        place += 16 + size
    place = rng.randrange(len(records))
    records[place : place + 1] = rng.choice([
        [], [records[place]] * 3, [damage_protobuf(records[place], rng)],
        [damage_protobuf(records[place], rng)], [damage_protobuf(records[place], rng)],
    ])  # fmt: skip
    made = b''
    for record in records:
        size = struct.pack('<Q', len(record))
        made += size + struct.pack('<I', crc32c(size, masked=True))
        made += record + struct.pack('<I', crc32c(record, masked=True))
    return made


def damage_table(data, rng):
    """A block of TensorFlow's index with its checksum, or the bytes."""
    if rng.random() < 0.3 or len(data) < 48:
        return damage_bytes(data, rng)
    data = bytearray(data)
    if rng.random() < 0.15:
        data[-48:-8] = damage_bytes(data[-48:-8], rng, 1, same_length=True)
        return bytes(data)
    handles, place = [], len(data) - 48
    for _ in range(2):
        pair = []
        for _ in range(2):
            number, place = varint(data, place)
            pair.append(number)
        handles.append(pair)
    first = min(start for start, _ in handles)
    handles.append([0, first - 5])  # the only block of entries in a small file
    start, size = rng.choice(handles[1:])
    block = bytearray(damage_bytes(data[start : start + size], rng, same_length=True))
    data[start : start + size] = block
    crc = crc32c(bytes(data[start : start + size + 1]), masked=True)
    data[start + size + 1 : start + size + 5] = struct.pack('<I', crc)
    return bytes(data)


def damage_tar(data, rng):
    """An archive's members and their kinds, or the bytes before or after compression."""
    kind = rng.randrange(4)
    if kind == 0:
        return damage_bytes(data, rng)
    plain = gzip.decompress(data)
    if rng.random() < 0.05:
        return _folders(rng.choice([5, 20_000]))
    if kind == 1:
        return gzip.compress(damage_bytes(plain, rng), 1)
    file = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(plain)) as source, tarfile.open(
        fileobj=file, mode='w:gz', compresslevel=1,
        format=rng.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    ) as target:  # fmt: skip
        members = [(info, source.extractfile(info)) for info in source]
        chosen = rng.randrange(len(members))
        for number, (info, content) in enumerate(members):
            body = content.read() if content else b''
            if number == chosen:
                what = rng.randrange(5)
                if what == 0:
                    info.name = rng.choice([name for name in NAMES if '\0' not in name]) or 'x'
                elif what == 1:
                    info.type = rng.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE,
                                            tarfile.FIFOTYPE, tarfile.DIRTYPE])  # fmt: skip
                    info.linkname = rng.choice(['/etc/passwd', '../..', info.name])
                elif what == 2:
                    continue
                elif what == 3:
                    body += bytes(rng.choice([1, 30_000_000]))
                else:
                    body = damage_bytes(body, rng)
            info.size = len(body) if info.isreg() else 0
            try:
                target.addfile(info, io.BytesIO(body))
            except (UnicodeError, ValueError):
                return damage_bytes(data, rng)
    return file.getvalue()


def _folders(count):
    """An archive of folders alone, each of which is a member."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode='w:gz', compresslevel=1) as archive:
        for number in range(count):
            folder = tarfile.TarInfo(str(number))
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
    return made.getvalue()


def damage_tokenizer(data, rng):
    """The steps of a tokenizer.json, some of which multiply a text, or its JSON."""
    if rng.random() < 0.6:
        return damage_json(data, rng)
    content, count = json.loads(data), rng.choice([1, 2, 8, 2000])
    replace = {'type': 'Replace', 'pattern': rng.choice([{'String': 'a'}, {'Regex': '|a'}]),
               'content': rng.choice(['b', 'a' * 10, '\ufdfa'])}  # fmt: skip
    step = rng.choice([replace, replace, {'type': 'Prepend', 'prepend': 'a' * 50},
                       {'type': 'NFKD'}, {'type': 'ByteLevel'}])  # fmt: skip
    text = {'Sequence': {'id': rng.choice('AB'), 'type_id': 0}}
    token = {'SpecialToken': {'id': rng.choice(['[CLS]', 'none']), 'type_id': 0}}
    template = {'type': 'TemplateProcessing', 'single': [rng.choice([text, token])] * count,
                'pair': [text] * rng.choice([1, 2, 100_000]), 'special_tokens': {
                    '[CLS]': {'id': '[CLS]', 'ids': [2] * count, 'tokens': ['[CLS]'] * count}},
                }  # fmt: skip
    content.update(rng.choice([
        {'normalizer': {'type': 'Sequence', 'normalizers': [step] * count}},
        {'decoder': {'type': 'Sequence', 'decoders': [replace] * count}},
        {'post_processor': template},
        {'post_processor': {'type': 'Sequence', 'processors': [template] * min(count, 8)}},
    ]))  # fmt: skip
    return json.dumps(content).encode()
