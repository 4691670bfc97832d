"""`make colab`: copies of the notebooks for Google Colab, each with a first cell that installs what is missing.

Colab opens a notebook alone, from a repository on GitHub: so links in the copies are absolute. What it has installed
stays as it is, but for PyTorch, where the course needs another version.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from nbformat.v4 import new_code_cell

from course_utils.copies import FOLDERS, learners, notebooks_of
from course_utils.notebooks import read, to_bytes
from docs.addresses import FILE, AddressError, Addresses, addresses
from docs.pages import TEXTS, relinked

ROOT = Path(__file__).parents[1]
OUT = ROOT / "colab"

FIRST = """\
# Installs the course where it is missing, as on Colab. Run this cell first; there it takes about a minute.
import importlib
import re
import subprocess
import sys
from importlib import metadata

WHEEL = {wheel!r}
ELSEWHERE = {{"jupyterlab"}}  # whoever reads this has a page to run it in


def version(package):
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def install(*what):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *what], check=True)
    importlib.invalidate_caches()


if not version("autograd-course"):
    install("--no-deps", WHEEL)
missing = []
for line in metadata.requires("autograd-course"):
    name, pin = re.match(r"([\\w-]+)(?:==)?([\\d.]*)", line).groups()
    if "extra ==" not in line and name not in ELSEWHERE and (not version(name) or pin not in ("", version(name))):
        missing.append(line)
if missing:
    install(*missing, "--extra-index-url", "https://download.pytorch.org/whl/cpu")
if "torch" in sys.modules and any(line.startswith("torch==") for line in missing):
    print("Another PyTorch was loaded before. Restart the session (menu Runtime), then run this cell again.")
if "google.colab" in sys.modules:
    from google.colab import output

    output.enable_custom_widget_manager()
"""


def write(root: Path, to: Path, where: Addresses) -> list[Path]:
    """Write a copy of every notebook that learners get into a folder, as the course's stand, and return the paths."""
    written = []
    for source, place in notebooks_of(root):
        path = to / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(to_bytes(copied(read(source), source, root, where)))
        written.append(path)
    return written


def copied(notebook: Any, source: Path, root: Path, where: Addresses) -> Any:
    """Return a notebook as Colab's readers get it: as learners do, with the first cell, and with absolute links."""
    made = learners(notebook)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = _absolute(cell.source, source, root, where)
    made.cells.insert(0, new_code_cell(FIRST.format(wheel=where.wheel), id="install"))
    return made


def _absolute(text: str, source: Path, root: Path, where: Addresses) -> str:
    """Return Markdown whose links lead to the copies for Colab, to the site, or to the repository.

    A link into a notebook leads to the site: Colab knows no anchors.
    """

    def renewed(picture: str, label: str, target: str, place: str) -> str:
        path = (source.parent / unquote(target)).resolve().relative_to(root.resolve())
        if path.suffix == ".ipynb" and str(path.parent) in FOLDERS and not place:
            address = f"{where.colab}/{path.as_posix()}"
        elif path.suffix == ".ipynb" or path.as_posix() in TEXTS:
            address = f"{where.site}/{PurePosixPath(path.as_posix()).with_suffix('.html')}{place}"
        else:
            address = f"{where.repository}/blob/HEAD/{path.as_posix()}{'?raw=true' if picture else ''}{place}"
        return f"{picture}[{label}]({address})"

    return relinked(text, renewed)


def main() -> None:
    try:
        written = write(ROOT, OUT, addresses())
    except AddressError as error:
        sys.exit(f"make colab: {error}")
    print(f"{len(written)} notebooks for Colab in {OUT}: commit them on the branch that {FILE.name} names")


if __name__ == "__main__":
    main()
