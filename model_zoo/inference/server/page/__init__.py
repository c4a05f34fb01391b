"""The server's page for trying its models in a browser."""

from .routes import PATHS, add_routes

__all__ = ['PATHS', 'add_routes']
