"""What a training leaves for the record: results.json."""

import platform

from ..util.files import write_json

__all__ = ['library_versions', 'write_results']


def library_versions():
    """Versions of Python and of the libraries that results depend on, by name."""
    import gluonnlp
    import mxnet
    import numpy

    versions = {library.__name__: library.__version__ for library in (mxnet, numpy, gluonnlp)}
    return {'python': platform.python_version(), **versions}


def write_results(path, args, state=None, **more):
    """Write ``results.json``, whole or not at all.

    Parameters
    ----------
    path : str
    args : dict
        Flag -> value of the run.
    state : TrainingState, optional
        Gives the epochs, the best of them, the loss log, time and throughput.
    **more
        Further entries, plain JSON.

    Raises
    ------
    InputError
        If the file can't be written.
    """
    results = {'args': args, 'versions': library_versions()}
    if state is not None:
        results['training'] = {
            'steps': state.step,
            'seconds': state.seconds,
            f'{state.unit}_per_second': state.examples / state.seconds if state.seconds else None,
            'best_epoch': state.best['epoch'] if state.best else None,
            'epochs': state.epochs,
            'log': state.log,
        }
    write_json(path, {**results, **more})
