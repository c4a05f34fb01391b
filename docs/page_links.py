"""Sphinx extension: a link to a page's file, `text <page.rst>`_, leads to that page of the site.

Such links also work on code hosts, unlike the role ``:doc:``.
"""

from docutils import nodes
from sphinx.addnodes import pending_xref


def link_pages(app, doctree):
    """Replace links to files of the documentation by references, which Sphinx checks."""
    for node in list(doctree.findall(nodes.reference)):
        target = node.get('refuri', '')
        if target.endswith('.rst') and '://' not in target:
            reference = pending_xref(
                '',
                *node.children,
                refdomain='std',
                reftype='doc',
                reftarget=target[: -len('.rst')],
                refdoc=app.env.docname,
                refexplicit=True,
                refwarn=True,
            )
            reference.source, reference.line = node.source, node.line
            node.replace_self(reference)


def setup(app):
    """Register the extension with Sphinx."""
    app.connect('doctree-read', link_pages)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
