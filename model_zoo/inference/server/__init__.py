"""Models behind HTTP; needs the extra ``serve``."""

from ...families import names_later
from .ray_serve import serve_on_ray
from .run import bind, name_models, read_key, serve
from .settings import Settings

__all__ = ['Settings', 'bind', 'build_app', 'name_models', 'read_key', 'serve', 'serve_on_ray']

__getattr__, _ = names_later(__name__, {'.app': 'build_app'})  # which loads MXNet
