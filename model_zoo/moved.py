"""Where the modules of version 0.1 are now, so that its documented imports go on working."""

import importlib
import importlib.abc
import importlib.util
import sys
import types
import warnings

__all__ = ['MOVED', 'keep_old_paths']

#: module of version 0.1 -> modules that have its names now, looked through in this order
MOVED = {
    'bert.pretraining': ('model_zoo.tasks.pretraining',),
    'model_zoo.attention_block': ('model_zoo.blocks.heads',),
    'model_zoo.bertology': ('model_zoo.analysis',),
    'model_zoo.block': ('model_zoo.blocks.block', 'model_zoo.util.checks'),
    'model_zoo.cli': ('model_zoo.app.cli',),
    'model_zoo.config': ('model_zoo.blocks.config', 'model_zoo.blocks.decoder.config'),
    'model_zoo.data': (
        'model_zoo.batches',
        'model_zoo.batches.windows',
        'model_zoo.tasks.classification',
        'model_zoo.tasks.choice',
        'model_zoo.tasks.tagging',
        'model_zoo.tasks.language_model',
    ),
    'model_zoo.data.pretraining': ('model_zoo.tasks.pretraining',),
    'model_zoo.data.squad': ('model_zoo.tasks.squad',),
    'model_zoo.data.vocab': ('model_zoo.tokenization.vocab',),
    'model_zoo.decoder': ('model_zoo.blocks.decoder.model', 'model_zoo.blocks.decoder.heads'),
    'model_zoo.mirror': ('model_zoo.blocks.mirror',),
}


class _OldPaths(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes a module for an old path; its names are looked up at their new places."""

    def find_spec(self, name, path=None, target=None):
        if name not in MOVED:
            return None
        is_package = any(other.startswith(f'{name}.') for other in MOVED)
        return importlib.util.spec_from_loader(name, self, is_package=is_package)

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        old, new = module.__name__, MOVED[module.__name__]
        warnings.warn(
            f'{old} has moved: import from {" or ".join(new)}', DeprecationWarning, stacklevel=2
        )

        def look_up(name):
            if not name.startswith('__'):
                for place in map(importlib.import_module, new):
                    if hasattr(place, name):
                        return getattr(place, name)
            raise AttributeError(f'module {old!r} has no attribute {name!r}')

        module.__getattr__ = look_up


def keep_old_paths():
    """Let the paths of `MOVED` be imported, with a DeprecationWarning."""
    sys.meta_path.insert(0, _OldPaths())  # before what an older installation left there
