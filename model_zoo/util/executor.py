"""What calls a function elsewhere: in processes, or on a cluster."""

import abc
import collections

__all__ = ['Executor']


class Executor(abc.ABC):
    """Calls of one function, ahead of the use of their results. It is a context manager.

    Attributes
    ----------
    most_waiting : int
        How many results `map` lets wait.
    """

    most_waiting = 1

    @abc.abstractmethod
    def submit(self, *arguments):
        """Have the function called, when there is room for it.

        Returns
        -------
        object
            With ``result()``, which waits for it and raises the function's error, and ``cancel()``.
        """

    def map(self, arguments):
        """Call the function with each tuple of arguments; few results wait at a time.

        Yields
        ------
        object
            The results, in order.
        """
        waiting = collections.deque()
        try:
            for each in arguments:
                waiting.append(self.submit(*each))
                if len(waiting) > self.most_waiting:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for result in waiting:
                result.cancel()

    @abc.abstractmethod
    def close(self):
        """End what works for it."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
