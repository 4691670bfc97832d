"""Draw the attached pictures anew, and put them into the masters."""

from pathlib import Path

import nbformat

from course_utils import notebooks
from course_utils.checks.registry import exercises
from tests.attached import PICTURES, passes, png

drawn = {name: png(name) for name in PICTURES} | {"missing_numbers": passes.png()}
for name, picture in drawn.items():
    path = Path(__file__).parents[2] / "solutions" / f"{exercises()[name].lesson}.ipynb"
    notebook = notebooks.read(path)
    (cell,) = [cell for cell in notebook.cells if f"(attachment:{name}.png)" in cell.source]
    cell.attachments = {f"{name}.png": {"image/png": picture}}
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    print(f"{name}: drawn into {path.name}")
