"""Models behind HTTP; needs the extra ``serve``."""

from .ray_serve import serve_on_ray
from .run import bind, name_models, read_key, serve
from .settings import Settings

__all__ = ['Settings', 'bind', 'build_app', 'name_models', 'read_key', 'serve', 'serve_on_ray']


def __getattr__(name):
    if name != 'build_app':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from .app import build_app  # loads MXNet

    return build_app
