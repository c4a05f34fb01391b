"""Folders that change while they are served."""

import logging
import threading

from ...util.files import state_of

__all__ = ['Reloader']

_log = logging.getLogger(__name__)


class Reloader:
    """A thread that looks at models' folders, and serves those anew that have changed.

    A folder is opened when it has stayed the same for one interval. The old model answers what it
    has accepted. A folder that can't be opened is told of in the log, and the old model stays.

    Parameters
    ----------
    models : Models
    folders : dict of str to str
        Name of a model -> its folder.
    open_pipeline : callable
        ``open_pipeline(folder) -> Pipeline``.
    interval : float
        Seconds between two looks.
    """

    def __init__(self, models, folders, open_pipeline, interval=1.0):
        self._models, self._folders = models, folders
        self._open, self._interval = open_pipeline, interval
        self._served = {name: state_of(folder) for name, folder in folders.items()}
        self._seen = dict(self._served)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name='reloader', daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._end.set()
        self._thread.join()

    def _watch(self):
        while not self._end.wait(self._interval):
            for name, folder in self._folders.items():
                state = state_of(folder)
                if state == self._seen[name] != self._served[name]:
                    self._served[name] = state  # also if it can't be opened: not again and again
                    self._reload(name, folder)
                self._seen[name] = state

    def _reload(self, name, folder):
        try:
            pipeline = self._open(folder)
        except Exception as error:
            _log.error('%s: the old model stays, as %s cannot be opened: %s', name, folder, error)
            _log.debug('the error in full', exc_info=True)
            return
        self._models.replace(name, pipeline)
        _log.info('%s: %s is served anew', name, folder)
