"""How Sphinx builds the site: ``sphinx-build -W --keep-going -b html docs docs/_build``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib as mpl
from generated_pages import link_inside_the_site, write_generated_pages

import onlinefw

mpl.use("Agg")

project = "onlinefw"
author = "The onlinefw developers"
copyright = author
version = release = onlinefw.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "README.md", "examples", "templates", "generated/*.md"]
templates_path = ["templates"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # they would make dashes of the options' hyphens

autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False  # what a module means to offer is in its __all__
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings say what the parameters are
numpydoc_show_class_members = False  # the template of a class lists its methods

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "doc_module": ("onlinefw",),
    "backreferences_dir": "generated/backreferences",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),  # what is printed is shown, not what the last line returns
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "onlinefw"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "onlinefw"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {name: [] for name in ("index", "start", "commands", "contributing", "changes")}

#: scikit-learn's plumbing for meta-estimators, whose docstrings point into its own pages.
PLUMBING = re.compile(r"set_\w+_request|get_metadata_routing")


def skip_plumbing(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what every scikit-learn estimator inherits and no reader looks for here."""
    return skip or PLUMBING.fullmatch(name) is not None


def plain_words(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show scikit-learn's links into its own pages as words, its formulas as code (no MathJax)."""
    for k, line in enumerate(lines):
        words = re.sub(r":ref:`(.*?)\s*<.*?>`", r"\1", line)
        lines[k] = re.sub(r":math:`(.*?)`", r"``\1``", words)


def setup(app: Any) -> None:
    """Connect the pages that are made from the code and from the benchmarks."""
    app.connect("config-inited", lambda app, config: write_generated_pages())
    app.connect("source-read", link_inside_the_site)
    app.connect("autodoc-skip-member", skip_plumbing)
    app.connect("autodoc-process-docstring", plain_words)
