"""Sphinx extension: the API reference, from each module's ``__all__`` and its docstrings.

    .. public-names:: model_zoo.optimizer
       :recursive:

shows the module's docstring, a table of its public names, and each name's documentation. With
``:recursive:`` it does so for each module in the package, under a heading. A name that is in the
``__all__`` of a package above is shown only there, since users import it from there.

A name in single backticks becomes a link if there is exactly one such name. Otherwise it stays
plain text: it may be a parameter. References by an explicit role, such as ``:class:``, must be
valid.
"""

import functools
import importlib
import inspect
import pkgutil
import re
import sys

from docutils.parsers.rst import directives
from sphinx.addnodes import pending_xref
from sphinx.domains.python import PyXRefRole
from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from model_zoo.families import FAMILIES

PACKAGES = (*FAMILIES, 'model_zoo', 'bert_embedding', 'export', 'mxnet_pretrained_bert')
_ON_TOP = ('class', 'data', 'exception', 'function', 'module')  # of a module
_NOISE = ('architectures', 'forward', 'hybrid_forward', 'set_fit_request', 'set_score_request')
_SECTIONS = ('Inputs', 'Outputs', 'Inputs, Outputs')
# Napoleon takes the beginning of their docstrings for a type; here it never is
_INLINE = ('attribute', 'data', 'property')
_TERM = re.compile(r'\w[\w, ]* : ')


# -- the directive ------------------------------------------------------------------------------


class PublicNames(SphinxDirective):
    """``.. public-names:: MODULE``."""

    required_arguments = 1
    option_spec = {'recursive': directives.flag}

    def run(self):
        (name,) = self.arguments
        lines = names_of(importlib.import_module(name))
        if 'recursive' in self.options:
            for module in modules_in(name):
                title = module.__name__
                lines += ['', title, '-' * len(title), '', *names_of(module)]
        return self.parse_text_to_nodes('\n'.join(lines), allow_section_headings=True)


def modules_in(package):
    """Return the modules of a package that show public names, sorted by name."""
    path = importlib.import_module(package).__path__
    found = pkgutil.walk_packages(path, f'{package}.')
    modules = [importlib.import_module(info.name) for info in found]
    return [module for module in modules if hasattr(module, '__all__') and own_names(module)]


def names_of(module):
    """Return the lines that show a module's docstring and its public names."""
    name = module.__name__
    data, others = [], []
    for each in own_names(module):
        value = getattr(module, each)
        is_data = not (inspect.isclass(value) or inspect.isroutine(value))
        (data if is_data else others).append(each)
    lines = [f'.. automodule:: {name}', '']
    if others:
        lines += ['.. autosummary::', '   :nosignatures:', '', *(f'   {n}' for n in others), '']
    for each in data:
        lines += [f'.. py:data:: {each}', '']
        lines += [*(f'   {line}' for line in comment_of(name, each)), '']
    for each in others:
        lines += [*entry(name, each, getattr(module, each)), '']
    return lines


def own_names(module):
    """Return the names of ``__all__`` that no package above `module` has in its ``__all__``."""
    names, package = list(getattr(module, '__all__', ())), module.__name__
    while package := package.rpartition('.')[0]:
        parent = importlib.import_module(package)
        above = [name for name in getattr(parent, '__all__', ()) if name in names]
        shown = [name for name in above if getattr(parent, name) is getattr(module, name)]
        names = [name for name in names if name not in shown]
    return names


def entry(module, name, value):
    """Return the directive that documents a class or a function of `module`."""
    if value.__module__.split('.')[0] != module.split('.')[0]:
        return [f'.. py:class:: {name}', '', f'   The same as `{value.__module__}.{name}`.']
    if not inspect.isclass(value):
        return [f'.. autofunction:: {name}']
    kind = 'autoexception' if issubclass(value, Exception) else 'autoclass'
    return [f'.. {kind}:: {name}', '   :members:', '   :show-inheritance:']


def comment_of(module, name):
    """Return the lines of the ``#:`` comment before the definition of a module's constant."""
    value, package = getattr(sys.modules[module], name), module.partition('.')[0]
    others = [
        each
        for each, loaded in sorted(sys.modules.items())
        if each.startswith(f'{package}.') and getattr(loaded, name, None) is value
    ]
    for each in (module, *others):
        found = ModuleAnalyzer.for_module(each).find_attr_docs().get(('', name))
        if found:
            return found
    raise ExtensionError(f'{module}.{name} has no comment that begins with "#:"')


# -- docstrings ---------------------------------------------------------------------------------


def define_terms(app, what, name, obj, options, lines):
    """Make each term of a block's inputs and outputs a definition, even if it is empty.

    Napoleon leaves these sections as they are, and in reStructuredText a line is a term only if an
    indented line follows.
    """
    result, inside = [], False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ''
        if set(following) == {'-'}:
            inside = line in _SECTIONS
        result.append(line)
        if inside and _TERM.match(line) and not following.startswith(' '):
            result += ['    ..', '']
    lines[:] = result


def keep_colons(app, what, name, obj, options, lines):
    """Keep Napoleon from taking an attribute's first words, up to a colon, for its type.

    Napoleon looks for the type only in the first line, so an empty comment goes there.
    """
    if what in _INLINE:
        lines[:0] = ['..', '']


def skip_noise(app, what, name, obj, skip, options):
    """Leave out what is explained elsewhere.

    These are named tuples' fields, forward passes, tables of sizes, scikit-learn's requests of
    metadata, classes that a class names, and properties without a docstring, for which autodoc
    shows the docstring of what they override.
    """
    noise = name in _NOISE or type(obj).__name__ == '_tuplegetter'
    noise |= what == 'class' and inspect.isclass(obj)
    noise |= isinstance(obj, (property, functools.cached_property)) and not obj.__doc__
    return True if noise else None


# -- references ---------------------------------------------------------------------------------


class NameRole(PyXRefRole):
    """The default role."""

    def run(self):
        self.name = 'py:obj'
        return super().run()

    def process_link(self, env, refnode, *rest):
        refnode['loose'] = True
        return super().process_link(env, refnode, *rest)


def loosen_types(app, doctree):
    """Accept a word of a parameter's type that isn't a name."""
    for node in doctree.findall(pending_xref):
        if node.get('refdomain') == 'py' and 'refspecific' in node:
            del node['refspecific']
            node['loose'] = True


def show_public_bases(app, name, obj, options, bases):
    """Replace each base class that isn't public by its own base classes."""
    bases[:] = dict.fromkeys(each for base in bases for each in public_bases(base))


def public_bases(base):
    module = sys.modules[base.__module__]
    if not is_ours(base.__module__) or base.__name__ in getattr(module, '__all__', ()):
        return [base]
    return [each for parent in base.__bases__ for each in public_bases(parent)]


def is_ours(name):
    return name.split('.')[0] in PACKAGES


def resolve(app, env, node, content):
    """Link to a name by its last part, or by the module that defines it.

    Names of other libraries get no link, nor do loose references that don't find anything.
    """
    if node.get('refdomain') != 'py':
        return None
    target = node['reftarget']
    module = node.get('py:module') or ''
    place = find(env.get_domain('py').objects, target, module)
    base = definer(node)
    if place is None and base is not None:  # the base class shows it, if it is public
        place = find(env.get_domain('py').objects, f'{base}.{target}', module)
    if place is not None:
        entry = place[1]
        return make_refnode(
            app.builder, node['refdoc'], entry.docname, entry.node_id, content, place[0]
        )
    foreign = '.' in target and not is_ours(target)
    return content if node.get('loose') or foreign or base is not None else None


def definer(node):
    """Return the name of the class that defines a reference's target for the class around it."""
    around = getattr(sys.modules.get(node.get('py:module')), node.get('py:class') or '', None)
    bases = getattr(around, '__mro__', ())
    return next((base.__name__ for base in bases if node['reftarget'] in vars(base)), None)


def find(objects, target, module):
    """Return the full name that `target` means in `module`, and its place; or None."""
    if is_ours(target):  # such as bert.model.BertModel, which is shown as bert.BertModel
        *package, name = target.split('.')
        names = ['.'.join([*package[:size], name]) for size in range(len(package), 0, -1)]
        found = [each for each in names if each in objects][:1]
    else:
        found = [
            name
            for name, entry in objects.items()
            if name.endswith(f'.{target}')
            and not entry.aliased
            and ('.' in target or entry.objtype in _ON_TOP)  # a bare word may be a parameter
        ]
        package = module.split('.')[0]
        found = [name for name in found if name.split('.')[0] == package] or found
    return (found[0], objects[found[0]]) if len(found) == 1 else None


def setup(app):
    """Register the extension with Sphinx."""
    app.add_directive('public-names', PublicNames)
    app.add_role('name', NameRole())
    app.connect('autodoc-process-docstring', define_terms, priority=400)  # before Napoleon
    app.connect('autodoc-process-docstring', keep_colons, priority=400)
    app.connect('autodoc-skip-member', skip_noise)
    app.connect('doctree-read', loosen_types)
    app.connect('autodoc-process-bases', show_public_bases)
    app.connect('missing-reference', resolve)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
