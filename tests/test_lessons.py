"""What every lesson must have, and what its prose may not."""

import re
from pathlib import Path

import pytest

from course_utils import notebooks

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TEACHING = [path for path in LESSONS if not path.stem.startswith("00")]
PAGES = [*LESSONS, *sorted((ROOT / "solutions").glob("*.ipynb"))]

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
    "10": {},
}


def prose(path: Path) -> str:
    """Return a notebook's text without code."""
    text = "\n\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")
    return re.sub(r"```.*?```|`[^`\n]*`|\$[^$\n]*\$", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", TEACHING, ids=lambda path: path.stem)
def test_each_claim_is_examined_once(path):
    tags = [
        tag.removeprefix("claim-")
        for cell in notebooks.read(path).cells
        if cell.cell_type == "code" and cell.outputs
        for tag in cell.metadata.get("tags", [])
        if tag.startswith("claim-")
    ]
    assert sorted(tags) == sorted(CLAIMS[path.stem[:2]])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_opening_and_the_end(path):
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "markdown"]
    opening = "\n".join(cell.source for cell in cells[:2])
    for part in ("**The question.**", "**You need**", "**Afterwards you can**", "**Time:**"):
        assert part in opening
    end = cells[-1].source
    assert f"](../exercises/{path.name})" in end
    headings = re.findall(r"^## (.+)$", "\n".join(cell.source for cell in cells), re.MULTILINE)
    assert headings[-1] == "Summary"


@pytest.mark.parametrize("path", TEACHING, ids=lambda path: path.stem)
def test_the_learner_predicts(path):
    assert prose(path).count("**Predict") >= 8


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_plain_words(path):
    text = prose(path)
    unwanted = (
        r"\b(simply|obviously|trivial(ly)?|basically|of course|let's|let us|note that)\b|!|[\U0001F300-\U0001FAFF]"
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
