"""What every lesson must have, and what its prose may not."""

import itertools
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from course_utils import notebooks
from course_utils.inline import anchor
from course_utils.notebooks.minutes import minutes

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DEEPER = sorted((ROOT / "notebooks" / "deeper").glob("*.ipynb"))
TEACHING = [path for path in LESSONS if not path.stem.startswith("00")]
PAGES = notebooks.sources(ROOT)

# Popular claims about autograd, each examined in one lesson by a cell that carries the tag "claim-ID".
CLAIMS = {
    "01": {
        "G1": "Leaves are the tensors that you create with requires_grad=True.",
        "G2": "The graph is a tree that can be printed by recursion over next_functions.",
        "G3": "backward() builds the graph.",
    },
    "02": {
        "B1": "With out = (xy + x)², x = 2 and y = 3: out = 64, x.grad = 64, y.grad = 32.",
        "B2": "The gradient from one branch overwrites that of another.",
        "B3": "The argument `gradient` has the shape of the input.",
        "B4": ".grad accumulates because a parameter may be used twice in one graph.",
    },
    "03": {
        "F1": "After backward() PyTorch deletes the graph.",
        "F2": "backward() can only be called once.",
        "F3": "Without backward() the graph is never freed.",
    },
    "04": {
        "R1": "Two losses on a shared trunk need retain_graph.",
        "R2": "backward(retain_graph=True), optimizer.step(), then the second loss's backward().",
        "R3": "retain_graph=True in a training loop makes memory grow every step.",
        "R4": "Iterative refinement needs retain_graph, since the graph is gone in the next iteration.",
        "R5": "Without retain_graph the second gradients are silently wrong.",
    },
    "05": {
        "H1": "retain_graph=True gives second derivatives: call x.grad.backward().",
        "H2": "create_graph is autograd.grad's name for retain_graph.",
        "H3": "For y = x³ at 3: y' = 27 and y'' = 18.",
        "H4": "backward(create_graph=True) is a harmless way to second derivatives.",
    },
    "06": {
        "D1": "detach() and no_grad() give the same result.",
        "D2": "detach() copies.",
        "D3": "GAN: detach to stop the gradient through the discriminator while training the generator.",
        "D4": "eval() switches gradients off.",
        "D5": "requires_grad_(False) on a layer is the same as no_grad around it.",
    },
    "07": {
        "A1": "Three backward calls of 1x, 2x and 3x leave 1, 3 and 6 in x.grad.",
        "A2": "zero_grad() sets gradients to zero.",
        "A3": "Zeroing must come right before backward().",
        "A4": "Divide the loss by the number of micro-batches.",
        "A5": "Gradient accumulation needs retain_graph.",
    },
    "08": {
        "T1": "retain_grad() must come before the tensor is used.",
        "T2": "Without retain_grad(), reading y.grad of a non-leaf raises.",
        "T3": "retain_grad() lets you run backward twice.",
        "T4": "The position of retain_grad() changes the gradient's value.",
        "T5": "retain_grad() is needed for higher-order gradients.",
    },
    "09": {
        "C1": "A checklist of five points makes a training loop right.",
    },
    "10": {},
    "11": {},
}


def prose(path: Path) -> str:
    """Return a notebook's text without code."""
    text = "\n\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")
    return re.sub(r"```.*?```|`[^`\n]*`|\$[^$\n]*\$", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", TEACHING, ids=lambda path: path.stem)
def test_each_claim_is_examined_once(path):
    tags = [
        tag.removeprefix("claim-")
        for page in [path, *(p for p in DEEPER if p.stem[:3] == path.stem[:3])]
        for cell in notebooks.read(page).cells
        if cell.cell_type == "code" and cell.outputs
        for tag in cell.metadata.get("tags", [])
        if tag.startswith("claim-")
    ]
    assert sorted(tags) == sorted(CLAIMS[path.stem[:2]])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_short_and_says_how_long_it_takes(path):
    notebook = notebooks.read(path)
    assert len(notebook.cells) <= 60
    assert len(prose(path).split()) <= 2200
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    long = [
        cell.id
        for cell in code
        if len(cell.source.splitlines()) > 20 and "predict" not in cell.metadata.get("tags", [])
    ]
    assert not long
    asked = [cell for cell in code if "predict(" in cell.source]
    assert 3 <= len(asked) <= 5
    assert all(cell.metadata.get("tags") == ["predict"] for cell in asked), (
        "the reasons would be read before the choice"
    )
    assert minutes(notebook) <= 40
    assert f"**Time:** about {minutes(notebook)} minutes" in prose(path)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_opens_with_its_failure_and_ends_with_a_turn(path):
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "markdown"]
    assert "**The question.**" not in cells[0].source
    assert "**You need**" in cells[0].source
    end = cells[-1].source
    assert "**Your turn**" in end
    assert f"](../exercises/{path.name})" in end
    assert re.search(r"^\| .+ \|$", end, re.MULTILINE), "a summary in one table"


@pytest.mark.parametrize("path", DEEPER, ids=lambda path: path.stem)
def test_the_opening_and_the_end_of_what_goes_deeper(path):
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "markdown"]
    opening = "\n".join(cell.source for cell in cells[:2])
    for part in ("**The question.**", "**You need**", "**Afterwards you can**", "**Time:**"):
        assert part in opening
    headings = re.findall(r"^## (.+)$", "\n".join(cell.source for cell in cells), re.MULTILINE)
    assert headings[-1] == "Summary"


@pytest.mark.parametrize("path", DEEPER, ids=lambda path: path.stem)
def test_what_goes_deeper_belongs_to_a_lesson_and_each_leads_to_the_other(path):
    (lesson,) = (lesson for lesson in LESSONS if lesson.stem[:3] == path.stem[:3])
    assert f"](../{lesson.name}" in prose(path)
    assert f"](deeper/{path.name}" in prose(lesson)


@pytest.mark.parametrize("path", DEEPER, ids=lambda path: path.stem)
def test_what_goes_deeper_is_short(path):
    cells = notebooks.read(path).cells
    assert len(cells) <= 45
    assert len(prose(path).split()) <= 2200
    long = [cell.id for cell in cells if cell.cell_type == "code" and len(cell.source.splitlines()) > 20]
    assert not long


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_link_within_a_page_leads_to_its_heading(path):
    """The site finds a comma or a colon in such a link only where it stands as it is."""
    text = prose(path)
    headings = {anchor(line.lstrip("#")) for line in text.splitlines() if line.startswith("#")}
    places = re.findall(r"\]\(#([^)]+)\)", text)
    assert {unquote(place) for place in places} <= headings
    assert not [place for place in places if re.search("%2C|%3A", place)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_plain_words(path):
    text = prose(path)
    unwanted = (
        r"\b(simply|obviously|trivial(ly)?|basically|of course|let's|let us|note that)\b"
        r"|!(?!\[)|[\U0001F300-\U0001FAFF]"  # `![` begins a picture
    )
    found = [match[0] for match in re.finditer(unwanted, text, re.IGNORECASE)]
    assert not found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_pictures_have_a_description(path):
    """Images in outputs carry alt text; a plot is followed or preceded by a cell of text that describes it."""
    cells = notebooks.read(path).cells
    for index, cell in enumerate(cells):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            assert 'alt=""' not in data.get("text/html", "")
            assert "<img" not in data.get("text/html", "") or "<img alt=" in data["text/html"]
            if "image/png" in data:
                around = [other for other in cells[max(index - 1, 0) : index + 2] if other.cell_type == "markdown"]
                assert around, f"{path}, cell {cell.id}"
                printed = any(
                    other.output_type == "stream"
                    for near in cells[max(index - 2, 0) : index + 2]
                    for other in near.get("outputs", [])
                )
                assert printed, f"{path}, cell {cell.id}: print the numbers that the plot shows"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_headings_go_down_one_level_at_a_time(path):
    prose = "\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")
    levels = [len(marks) for marks in re.findall(r"^(#+) ", re.sub(r"```.*?```", "", prose, flags=re.DOTALL), re.M)]
    assert levels[:1] == [1]
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels)), levels


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_cell_ends_in_a_semicolon(path):
    """It hides an object from Jupyter and not from nbval: `_ = ...` hides it from both."""
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
    assert not [cell.source for cell in cells if cell.source.rstrip().endswith(";")]


def right_places(path: Path) -> list[str]:
    """Return of each guess of a lesson where the option stood that the run gave: "first", "last" or "within"."""
    found = []
    for output in itertools.chain.from_iterable(cell.get("outputs", []) for cell in notebooks.read(path).cells):
        asked, _, gave = output.get("data", {}).get("text/plain", "").partition("\nThe run gave: ")
        options = re.findall(r"^  - (.*)$", asked, re.MULTILINE)
        right = gave.partition("\n")[0]
        if gave and right in options:
            found.append({0: "first", len(options) - 1: "last"}.get(options.index(right), "within"))
    return found


def test_the_place_of_an_option_does_not_tell_that_it_is_right():
    places = {path.stem: right_places(path) for path in LESSONS}
    assert all(len(found) >= 3 for found in places.values()), places
    assert not [lesson for lesson, found in places.items() if len(set(found)) == 1]
    every = list(itertools.chain.from_iterable(places.values()))
    assert all(every.count(place) <= len(every) / 2 for place in set(every)), places
