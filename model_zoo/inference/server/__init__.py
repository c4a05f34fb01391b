"""Models behind HTTP; needs the extra ``serve``."""

from .app import build_app
from .ray_serve import serve_on_ray
from .run import bind, name_models, read_key, serve
from .service import Settings

__all__ = ['Settings', 'bind', 'build_app', 'name_models', 'read_key', 'serve', 'serve_on_ray']
