"""The table of translations, which the other modules of this folder fill."""

__all__ = ['OPERATORS', 'translates']

#: name of an MXNet operator -> its translation, ``translate(writer, node) -> Tensor or list``
OPERATORS = {}


def translates(*names):
    """Enter the decorated function into `OPERATORS` under these names."""

    def register(function):
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register
