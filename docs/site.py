"""`make site`: the course as a site without a server, from stored outputs. It opens from a folder, too."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

from course_utils.copies import FOLDERS
from docs.pages import prepare

ROOT = Path(__file__).parents[1]
OUT = ROOT / "site"

INDEX = """# Autograd, by experiment

{lead}

```{{toctree}}
:maxdepth: 1
:caption: Lessons

{lessons}
```

```{{toctree}}
:maxdepth: 1
:caption: Find an answer

notebooks/README
notebooks/questions/README
```

```{{toctree}}
:maxdepth: 1
:caption: Exercises, to read

{exercises}
```

```{{toctree}}
:maxdepth: 1
:caption: Deeper

{deeper}
```

```{{toctree}}
:maxdepth: 1
:caption: Questions people ask

{questions}
```

```{{toctree}}
:maxdepth: 1
:caption: Teach and grade

TEACHING
GRADING
SECURITY
CONTRIBUTING
```
"""


# Names and signs of code without a colour of their own, and the words of code in a sentence, which may as well break at
# the end of a line: half of a page of questions.
_PLAIN = re.compile(r'<span class="(?:n|nn|o|p|pre|w)">([^<]*)</span>')


def build(root: Path, out: Path) -> list[str]:
    """Write the site to `out`, and return Sphinx's warnings. What was in `out` is replaced."""
    scratch = out.with_name(f".{out.name}")
    for folder in (scratch, out):
        shutil.rmtree(folder, ignore_errors=True)
    prepare(root, scratch)
    (scratch / "index.md").write_text(_index(root), encoding="utf-8")
    static = scratch / "_static"
    shutil.copytree(root / "docs" / "static", static)
    shutil.copytree(root / "docs", scratch / "docs", ignore=shutil.ignore_patterns("*.py", "static", "__pycache__"))
    (static / "mathjax").mkdir()
    shutil.copy(_mathjax(), static / "mathjax" / "tex-svg.js")
    command = [sys.executable, "-m", "sphinx", "-q", "-j", "auto", "-b", "html", "-c", str(root / "docs")]
    done = subprocess.run(
        [*command, "-D", f"html_static_path={static}", str(scratch), str(scratch / "_build" / "site")],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    warnings = done.stderr.replace(f"{scratch}/", "").splitlines()
    if done.returncode:
        raise RuntimeError("\n".join(warnings))
    shutil.move(scratch / "_build" / "site", out)  # beside it lie copies of notebooks that nobody asked for
    shutil.rmtree(scratch)
    for leftover in (".doctrees", ".buildinfo", "objects.inv"):
        path = out / leftover
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for page in out.rglob("*.html"):
        page.write_text(_PLAIN.sub(r"\1", page.read_text(encoding="utf-8")), encoding="utf-8")
    for unread in (*out.glob("_static/**/*.html"), *out.glob("_static/**/*.map")):
        unread.unlink()
    return warnings


def _index(root: Path) -> str:
    readme = (root / "README.md").read_text(encoding="utf-8")
    lead = readme.partition("\n")[2].partition("## Start")[0].strip()
    pages = {
        folder: "\n".join(f"{folder}/{path.stem}" for path in sorted((root / folder).glob("*.ipynb")))
        for folder in FOLDERS
    }
    return INDEX.format(
        lead=lead,
        lessons=pages["notebooks"],
        deeper=pages["notebooks/deeper"],
        questions=pages["notebooks/questions"],
        exercises=pages["exercises"],
    )


def _mathjax() -> Path:
    """Return MathJax as one file, from the package that brings it."""
    found = util.find_spec("sphinx-mathjax-offline")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("sphinx-mathjax-offline is not installed: make setup")
    return Path(found.submodule_search_locations[0]) / "static" / "mathjax" / "tex-svg.js"


def main() -> None:
    warnings = build(ROOT, OUT)
    print("\n".join(warnings))
    size = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file())
    pages = list(OUT.rglob("*.html"))
    largest = max(pages, key=lambda path: path.stat().st_size)
    print(f"{len(pages)} pages, {size / 1e6:.1f} MB, {len(warnings)} warnings; open {OUT / 'index.html'}")
    print(f"largest: {largest.relative_to(OUT)}, {largest.stat().st_size / 1000:.0f} kB")
    raise SystemExit(bool(warnings))


if __name__ == "__main__":
    main()
