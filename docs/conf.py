"""Configuration of the documentation's site, which `make docs` builds; see sphinx-doc.org."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / 'scripts' / 'originals')]

import model_zoo  # noqa: E402

project = 'gluon-transformer-zoo'
author = 'The gluon-transformer-zoo authors'
copyright = author
version = release = model_zoo.__version__

extensions = [
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.napoleon',
    'sphinx_copybutton',
    'sphinx_design',
    'myst_nb',
    'api_reference',  # this and the next are beside this file
    'page_links',
]
exclude_patterns = ['_build', '**/.ipynb_checkpoints', '**/README*', '**/output_dir']
nitpicky = True  # a reference that leads nowhere is a warning, and so an error of `make docs`

html_theme = 'furo'
html_title = f'gluon-transformer-zoo {version}'
html_logo = html_favicon = 'static/logo.svg'
html_copy_source = False
html_static_path = ['static']
html_css_files = ['site.css']
html_show_copyright = False
pygments_style = 'friendly'
copybutton_prompt_text = '$ '  # of a console block, only its commands are copied
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = '\\'

# Notebooks are shown with the outputs that docs/run_notebooks.py wrote into them.
nb_execution_mode = 'off'

# -- the API reference, see api_reference.py ----------------------------------------------------

default_role = 'name'
autosummary_generate = False
autodoc_member_order = 'bysource'
autodoc_typehints = 'none'  # the docstrings have the types
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = ['Inputs', 'Outputs', 'Inputs, Outputs']
toc_object_entries_show_parents = 'hide'
add_module_names = False
