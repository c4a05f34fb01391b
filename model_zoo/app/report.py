"""Reports of a training: results.json, and the originals' eval_results.txt."""

import os
import platform

from ..util.files import atomic_write, make_writable_dir, write_json

__all__ = ['library_versions', 'write_eval_results', 'write_results']

# our metrics -> what the originals' scripts call them; some have had two names
_NAMES = {
    'accuracy': ('acc', 'eval_accuracy'),
    'loss': ('eval_loss',),
    'matthews': ('mcc',),
    'spearman': ('spearmanr',),
    'mlm_acc': ('masked_lm_accuracy',),
    'mlm_loss': ('masked_lm_loss',),
    'nsp_acc': ('next_sentence_accuracy',),
    'nsp_loss': ('next_sentence_loss',),
}
_MEANS = {'acc_and_f1': ('acc', 'f1'), 'corr': ('pearson', 'spearmanr')}
_FOLDERS = {'dev_mismatched': '-MM'}  # of what isn't the first dev set


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

    Returns
    -------
    dict
        What was written.
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
    results.update(more)
    write_json(path, results)
    return results


def write_eval_results(folder, report, step=0, train_loss=None):
    """Write ``eval_results.txt`` as the originals' scripts do: a line ``name = number`` per metric.

    The metrics have the names of Google's and pytorch-pretrained-BERT's scripts: ``eval_accuracy``
    and ``acc``, ``eval_loss``, ``f1``, ``acc_and_f1``, ``mcc``, ``corr``; ``global_step``, and
    ``loss``, the mean loss of the training (without one and of pre-training, of the evaluation).
    A second dev set has its own folder: MNLI's mismatched one is in ``FOLDER-MM``.

    Parameters
    ----------
    folder : str
    report : dict
        Dev set -> its metrics by our names, see `Evaluation`. Nothing is written without one.
    step : int
        Updates done.
    train_loss : float, optional
    """
    for number, (segment, metrics) in enumerate(report.items()):
        values = {}
        for name, value in metrics.items():
            if not name.endswith('_per_second'):
                values.update(dict.fromkeys(_NAMES.get(name, (name,)), value))
        for name, parts in _MEANS.items():
            if values.keys() >= set(parts):
                values[name] = sum(values[part] for part in parts) / len(parts)
        values['global_step'] = step
        if 'masked_lm_loss' in values:
            values['loss'] = values['masked_lm_loss'] + values.get('next_sentence_loss', 0)
        elif train_loss is not None:
            values['loss'] = train_loss
        elif 'eval_loss' in values:
            values['loss'] = values['eval_loss']
        place = folder
        if number:
            beside = folder.rstrip(os.sep) + _FOLDERS.get(segment, f'-{segment}')
            place = make_writable_dir(beside)
        with atomic_write(os.path.join(place, 'eval_results.txt')) as file:
            file.writelines(f'{name} = {value}\n' for name, value in sorted(values.items()))
