"""Copies for Colab: absolute links, and a first cell that installs the course where it is missing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_utils.copies import FOLDERS
from docs import colab
from docs.addresses import FILE, AddressError, Addresses, addresses
from tests.wheels import ROOT, bare_python, build_wheel

WHERE = Addresses("https://github.com/o/c", "https://o.github.io/c", "https://o.github.io/c/c.whl", "colab")
OPENED = "https://colab.research.google.com/github/o/c/blob/colab"


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, nbformat.NotebookNode]:
    to = tmp_path_factory.mktemp("colab")
    written = colab.write(ROOT, to, WHERE)
    return {path.relative_to(to).as_posix(): nbformat.read(path, 4) for path in written}


def test_each_notebook_that_learners_get_has_a_copy(copies: dict[str, nbformat.NotebookNode]) -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).glob("*.ipynb")]
    assert set(copies) == {path.relative_to(ROOT).as_posix() for path in sources}
    for notebook in copies.values():
        nbformat.validate(notebook)
        assert notebook.cells[0].source == colab.FIRST.format(wheel=WHERE.wheel)
        assert not any(cell.get("outputs") for cell in notebook.cells)


def test_no_link_in_a_copy_needs_what_lies_beside_it(copies: dict[str, nbformat.NotebookNode]) -> None:
    links = [
        link
        for notebook in copies.values()
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for link in re.findall(r"\]\(([^)\s]+)\)", cell.source)
    ]
    absolute = [link for link in links if link.startswith("https://")]
    assert not [link for link in links if not link.startswith(("https://", "attachment:", "#"))]
    opened = {link.removeprefix(f"{OPENED}/") for link in absolute if link.startswith(OPENED)}
    assert opened <= set(copies)
    assert len(opened) > 20


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("[a](../exercises/02_how_backward_works.ipynb)", f"[a]({OPENED}/exercises/02_how_backward_works.ipynb)"),
        ("[a](06_detach_vs_no_grad.ipynb#What)", "[a](https://o.github.io/c/notebooks/06_detach_vs_no_grad.html#What)"),
        ("[a](README.md)", "[a](https://o.github.io/c/notebooks/README.html)"),
        ("[a](../Makefile)", "[a](https://github.com/o/c/blob/HEAD/Makefile)"),
        ("![a](../docs/card.png)", "![a](https://github.com/o/c/blob/HEAD/docs/card.png?raw=true)"),
        ("[a](#here) [b](https://x.org)", "[a](#here) [b](https://x.org)"),
    ],
)
def test_a_link_leads_to_colab_the_site_or_the_repository(link: str, leads: str) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(link)])
    made = colab.copied(notebook, ROOT / "notebooks" / "02_how_backward_works.ipynb", ROOT, WHERE)
    assert made.cells[1].source == leads


def test_addresses_that_are_missing_or_none_are_named(tmp_path: Path) -> None:
    file = tmp_path / "addresses.toml"
    file.write_text(
        'repository = "https://github.com/o/c/"\nsite = "https://o.org/"\nwheel = "https://o.org"\nbranch = "b"'
    )
    assert addresses(file) == Addresses("https://github.com/o/c", "https://o.org", "https://o.org", "b")
    file.write_text(file.read_text().replace('"b"', '""'))
    with pytest.raises(AddressError, match=r"addresses\.toml: `branch` is empty\. Fill it in"):
        addresses(file)
    file.write_text(file.read_text().replace("https://github.com", "https://elsewhere.org"))
    with pytest.raises(AddressError, match=r"`repository` is .* should begin with https://github\.com/$"):
        addresses(file)
    assert set(re.findall(r"^(\w+) =", FILE.read_text(), re.MULTILINE)) == set(Addresses.__dataclass_fields__)


def test_the_first_cell_installs_the_course_where_it_is_missing_and_once(tmp_path: Path) -> None:
    python = bare_python(tmp_path)
    first = colab.FIRST.format(wheel=str(build_wheel(tmp_path / "dist")))
    program = tmp_path / "first.py"
    program.write_text(
        "import subprocess, json\nran = []\nreal = subprocess.run\n"
        "subprocess.run = lambda command, **more: ran.append(command[3:]) or real(command, **more)\n"
        f"{first}\n"
        "import course_utils\nfrom course_utils import check, trace\nprint(json.dumps([ran, course_utils.__file__]))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = [python, "-c", "import course_utils"]
    assert subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode
    for commands in (1, 0):
        done = subprocess.run(
            [python, str(program)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        ran, file = json.loads(done.stdout.splitlines()[-1])
        assert len(ran) == commands
        assert file.startswith(str(tmp_path / "env"))


def test_the_first_cell_asks_for_what_the_course_needs_and_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"autograd-course": "0.1.0", "torch": "2.9.1+cu130", "numpy": "2.0", "pygraphviz": "2.0"}
    needs = ["torch==2.13.0", "numpy", "pygraphviz>=2", "anywidget", "jupyterlab", 'nbgrader; extra == "classroom"']
    ran: list[list[str]] = []

    def version(package: str) -> str:
        if package not in installed:
            raise colab_metadata.PackageNotFoundError(package)
        return installed[package]

    from importlib import metadata as colab_metadata

    monkeypatch.setattr(colab_metadata, "version", version)
    monkeypatch.setattr(colab_metadata, "requires", lambda package: needs)
    monkeypatch.setattr(subprocess, "run", lambda command, **more: ran.append(command[4:]))
    exec(colab.FIRST.format(wheel="w"), {"__name__": "__main__"})
    index = ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
    assert ran == [["-q", "torch==2.13.0", "anywidget", *index]]
    assert "torch" in sys.modules  # as here: so it says that the session has to start again


def test_without_addresses_the_command_says_which_to_fill_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "addresses.toml"
    file.write_text('repository = ""\n')
    monkeypatch.setattr(colab, "addresses", lambda: addresses(file))
    with pytest.raises(SystemExit, match=r"make colab: .*`repository` is empty"):
        colab.main()
