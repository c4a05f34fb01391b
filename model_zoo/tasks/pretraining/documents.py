"""Text files as documents of sentences; any part can be read without the parts before it."""

import codecs
import itertools

from ...errors import InputError
from ...util.remote import file_size, is_file, matching, open_binary

__all__ = ['Corpus', 'describe_files', 'matching_files']

_LONGEST_DOCUMENT = 2**25  # bytes; a longer one lacks its blank lines, and would fill the memory


def matching_files(patterns):
    """The files that wildcards match, sorted, each once.

    Parameters
    ----------
    patterns : str
        Separated by commas; ``~`` is the home directory. They may be URLs.

    Returns
    -------
    list of str
    """
    found = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(','))):
        try:
            paths = matching(pattern)
        except OSError as error:
            raise InputError(f'cannot read {pattern!r}: {error.strerror}') from error
        if not paths:
            raise InputError(f'no file matches {pattern!r}')
        for path in paths:
            if not is_file(path):
                raise InputError(f'{path!r} is no file; name files, such as {path}/*')
        found.update(paths)
    if not found:
        raise InputError(f'{patterns!r} names no files')
    return sorted(found)


def describe_files(patterns):
    """Number of files and bytes, by which a resumed training recognizes its data.

    Parameters
    ----------
    patterns : str
        See `matching_files`.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If no file matches.
    """
    files = matching_files(patterns)
    return f'{len(files)} files of {sum(map(file_size, files))} bytes'


class Corpus:
    """Documents in text files: one sentence a line, blank lines between documents.

    A place in the corpus is a number of bytes, counted over all files. The end of a file also ends
    a document (in the originals, documents continue in the next file).

    Parameters
    ----------
    files : sequence of str
        In UTF-8.

    Attributes
    ----------
    num_bytes : int
    """

    def __init__(self, files):
        self.files = list(files)
        try:
            sizes = [file_size(path) for path in self.files]
        except OSError as error:
            raise InputError(f'cannot read {error.filename!r}: {error.strerror}') from error
        *self._starts, self.num_bytes = itertools.accumulate(sizes, initial=0)
        if not self.num_bytes:
            raise InputError(f'no text in {", ".join(self.files)}')

    def span(self, number, count):
        """Begin and end of part `number` of `count` about equal ones."""
        return self.num_bytes * number // count, self.num_bytes * (number + 1) // count

    def documents(self, start, stop):
        """Read the documents that belong to a part of the corpus.

        A document belongs to the part with the start of the last blank line before it, or of its
        file. So each document is in exactly one part.

        Parameters
        ----------
        start, stop : int

        Yields
        ------
        list of str
            Sentences, without white space around them.
        """
        ends = [*self._starts[1:], self.num_bytes]
        for path, first, end in zip(self.files, self._starts, ends):
            if first < stop and start < end:
                try:
                    yield from _documents(path, max(start - first, 0), stop - first)
                except OSError as error:
                    raise InputError(f'cannot read {path!r}: {error.strerror}') from error

    def documents_outside(self, start, stop):
        """Read the documents of all other parts, those behind `stop` first."""
        yield from self.documents(stop, self.num_bytes)
        yield from self.documents(0, start)


def _documents(path, start, stop):
    with open_binary(path) as file:
        place, may_begin = start, start == 0
        if start:  # a line that has begun before isn't ours
            file.seek(start - 1)
            place = start - 1 + _skip_line(file)
        sentences, begin = [], place
        # lines end at a newline only, as everywhere here; the limit is for files without any
        for line in iter(lambda: file.readline(_LONGEST_DOCUMENT), b''):
            sentence = _decode(path, place, line)
            if sentence and may_begin:
                if place + len(line) - begin >= _LONGEST_DOCUMENT:
                    raise InputError(
                        f'{path}: from byte {begin} on there is no blank line for '
                        f'{_LONGEST_DOCUMENT >> 20} MB; put one sentence on a line, and blank '
                        'lines between documents'
                    )
                sentences.append(sentence)
            elif not sentence:
                if sentences:
                    yield sentences
                sentences, begin = [], place
                may_begin = place < stop
            if not may_begin and place >= stop:
                return
            place += len(line)
        if sentences:
            yield sentences


def _skip_line(file):
    """Read past the next newline; returns the number of bytes."""
    count = 0
    for part in iter(lambda: file.readline(2**20), b''):
        count += len(part)
        if part.endswith(b'\n'):
            break
    return count


def _decode(path, place, line):
    """The sentence on a line that begins at byte `place`."""
    if place == 0 and line.startswith(codecs.BOM_UTF8):
        line = line[len(codecs.BOM_UTF8) :]
    try:
        return line.decode('utf-8').strip()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path}: byte 0x{line[error.start]:02x} at position {place + error.start} is not '
            'UTF-8; save the file as UTF-8'
        ) from None
