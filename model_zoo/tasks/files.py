"""The files of a task's sets, as settings name them."""

from ..errors import InputError
from ..pretrained import local_path
from ..util.remote import is_file, is_folder, is_url, join

__all__ = ['check_files', 'segment_files']

# those of files that aren't read line by line
_COPIED = {'bert_config_file', 'model_file', 'sentencepiece', 'vocab'}


def check_files(settings, *names):
    """Raise InputError, naming the field, if one of these was given and isn't a file.

    A field whose file a library opens gets the path of a copy, where it was a URL.
    """
    for name in names:
        path = getattr(settings, name)
        if path is not None and name in _COPIED and is_url(path):
            path, _ = local_path(path)
            setattr(settings, name, path)
        if path is not None and not is_file(path):
            problem = 'is a directory, not a file' if is_folder(path) else 'no such file'
            raise InputError(f'`{name}` {path!r}: {problem}')


def segment_files(settings, is_file=is_file, **names):
    """The files of a task's segments, named by `SEGMENT_file` or found in `data_dir`.

    Parameters
    ----------
    settings : Settings
    is_file : callable
        Whether a path is of something that the task reads.
    **names
        Segment -> tuple of the names that its file may have in the folder.

    Returns
    -------
    dict
        Segment -> path, for the existing files.
    """
    files = {segment: getattr(settings, f'{segment}_file') for segment in names}
    given = [segment for segment, path in files.items() if path and not is_file(path)]
    check_files(settings, *(f'{segment}_file' for segment in given))
    if settings.data_dir is not None:
        found = {}
        for segment, own in names.items():
            paths = (join(settings.data_dir, name) for name in own)
            found[segment] = next(filter(is_file, paths), None)
        if not any(found.values()):
            expected = ', '.join(' or '.join(own) for own in names.values())
            raise InputError(f'`data_dir` {settings.data_dir!r} has none of {expected}')
        files = {segment: path or found[segment] for segment, path in files.items()}
    return {segment: path for segment, path in files.items() if path}
