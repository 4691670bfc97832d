"""Sphinx's settings for the site. `docs/site.py` prepares the pages and calls Sphinx."""

project = "Autograd, by experiment"
author = "the founders of the course"
copyright = ""
extensions = ["myst_nb"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

nb_execution_mode = "off"  # the outputs are those that the suite compares
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "course_utils.inline.anchor"
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["course.css"]
html_js_files = ["course.js"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it fetches pages, which a folder opened without a server forbids
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_navbar_depth": 1,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "article_header_end": ["search-button.html", "theme-switcher.html", "toggle-secondary-sidebar.html"],
    "search_bar_text": "Search the course",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# MathJax is shipped: the site asks no other address for anything.
mathjax_path = "mathjax/tex-svg.js"
