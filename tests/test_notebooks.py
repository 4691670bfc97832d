"""Building notebooks: execution, normal form, release, and what happens to broken ones."""

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils import notebooks
from course_utils.checks.registry import LESSONS, exercises
from course_utils.notebooks import NotebookError, building, plots, running
from tests.test_index import headings

ROOT = Path(__file__).parents[1]
COMMITTED = notebooks.sources(ROOT)
MASTERS = [path for path in COMMITTED if path.parent.name == "solutions"]

ANSWER = "first_gradient = ...\n\n### BEGIN SOLUTION\nfirst_gradient = 8\n### END SOLUTION"
IMPORT = "from course_utils import check"
CHECK = 'check("first_gradient", first_gradient)'


def write(path: Path, *cells) -> Path:
    """Write a notebook of code cells (str) and markdown cells (tuples)."""
    made = [new_markdown_cell(cell[0]) if isinstance(cell, tuple) else new_code_cell(cell) for cell in cells]
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(nbformat.writes(new_notebook(cells=made)))
    return path


def small_course(root: Path) -> Path:
    """Make a small course: a lesson and a master."""
    write(root / "notebooks" / "00_a.ipynb", ("# A title",), "x = 3", "print(x)\nx", ("## More",), "", "x + 1")
    write(root / "notebooks" / "deeper" / "00_b.ipynb", ("# Deeper",), "print(4)")
    write(root / "solutions" / "00_a.ipynb", "from course_utils import check", ("## 1. One",), ANSWER, CHECK)
    return root


@pytest.fixture
def course(tmp_path) -> Path:
    """A small course of a test's own."""
    return small_course(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[Path, bytes]:
    """The small course after one build, written."""
    built = notebooks.build(small_course(tmp_path_factory.mktemp("built")))
    notebooks.write(built)
    return built


def folder_of(built: dict[Path, bytes]) -> Path:
    return next(path for path in built if path.parent.name == "exercises").parents[1]


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_build_executes_normalises_and_releases(built):
    course = folder_of(built)
    assert sorted(str(path.relative_to(course)) for path in built) == [
        "exercises/00_a.ipynb",
        "notebooks/00_a.ipynb",
        "notebooks/deeper/00_b.ipynb",
        "solutions/00_a.ipynb",
    ]
    lesson = notebooks.read(course / "notebooks" / "00_a.ipynb")
    assert [cell.id for cell in lesson.cells] == ["a-title", "a-title-2", "a-title-3", "more", "more-2"]
    code = [cell for cell in lesson.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2, 3]
    assert [output.output_type for output in code[1].outputs] == ["stream", "execute_result"]
    assert code[2].outputs[0].data["text/plain"] == "4"
    assert lesson.metadata.language_info == {"name": "python"}


def test_a_second_build_changes_no_byte(built):
    again = notebooks.build(folder_of(built))
    assert again == built
    assert notebooks.differing(again) == []
    assert notebooks.write(again) == []


def test_masters_get_nbgraders_metadata_and_the_points_of_the_exercise(built):
    course = folder_of(built)
    *_, answer, check = notebooks.read(course / "solutions" / "00_a.ipynb").cells
    common = {"schema_version": 3, "task": False}
    assert answer.metadata.nbgrader == {
        **common, "grade": False, "solution": True, "locked": False, "grade_id": "first_gradient"
    }  # fmt: skip
    assert check.metadata.nbgrader == {
        **common, "grade": True, "solution": False, "locked": True, "grade_id": "check_first_gradient", "points": 1
    }  # fmt: skip
    assert check.metadata.tags == ["raises-exception"]


def test_release_cuts_answers_and_outputs(built):
    course = folder_of(built)
    released = notebooks.read(course / "exercises" / "00_a.ipynb")
    answer = released.cells[2]
    assert answer.source == "first_gradient = ...\n\n# Your answer here."
    for cell in released.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_indented_answers_keep_their_indentation():
    source = "def f():\n    a = 1\n    ### BEGIN SOLUTION\n    return a\n    ### END SOLUTION\n\nf()"
    assert notebooks.without_answers(source) == "def f():\n    a = 1\n    # Your answer here.\n\nf()"


def test_readable_ids_stay_and_random_ones_go():
    cells = [new_code_cell("1", id=name) for name in ("own-name", "0a1b2c3d", "own-name", "Bad_Name")]
    notebooks.name_cells(cells)
    assert [cell.id for cell in cells] == ["own-name", "start", "start-2", "start-3"]


def test_streams_are_merged_and_tracebacks_are_one_line(tmp_path):
    path = write(tmp_path / "notebooks" / "a.ipynb", "print(1)\nprint(2, flush=True)\nprint(3)", "1 / 0")
    cells = notebooks.read(path).cells
    cells[1].metadata["tags"] = ["raises-exception"]
    path.write_text(nbformat.writes(new_notebook(cells=cells)))
    first, second = notebooks.run(path).cells
    assert [output.text for output in first.outputs] == ["1\n2\n3\n"]
    assert second.outputs[0].traceback == ["ZeroDivisionError: division by zero"]


BROKEN = {
    "raises": (["1 / 0"], r"cell start: raised ZeroDivisionError: division by zero"),
    "dies": (["import os\nos._exit(1)"], r"cell start: the kernel died"),
    "never ends": (["while True: pass"], r"cell start: still running after 2 seconds"),
    "address": (["print(object())"], r"cell start: the output holds a memory address \(0x"),
    "path": ([f"print({str(ROOT / 'x')!r})"], r"cell start: the output holds a path of this machine"),
    "no end": (["### BEGIN SOLUTION\nx = 1"], r"cell start: '### BEGIN SOLUTION' has no '### END SOLUTION'"),
    "no check": ([ANSWER], r"cell start: no check follows this solution"),
    "no answer": (
        ["from course_utils import check", CHECK],
        r"cell start-2: check\('first_gradient'\) has no solution",
    ),
    "no exercise": ([ANSWER, 'check("nobody", nobody)'], r"no exercise is called 'nobody'"),
    "other name": ([ANSWER, 'check("first_gradient", 8)'], r"cell start-2: a check cell holds one check, of the form"),
    "a stage by its own name": ([ANSWER, 'check("record", record)'], r"cell start-2: a check cell holds one check"),
    "checked twice": ([IMPORT, ANSWER, CHECK, ANSWER, CHECK], r"cell start-5: a check cell holds one check"),
    "two checks": ([IMPORT, ANSWER, f"{CHECK}\n{CHECK}"], r"cell start-3: a check cell holds one check"),
    "two begins": ([IMPORT, f"### BEGIN SOLUTION\n{ANSWER}", CHECK], r"cell start-2: .*do not alternate"),
    "wrong answer": (
        [IMPORT, ANSWER.replace("8", "9"), CHECK],
        r"cell start-3: the master's own answer fails: CheckFailed",
    ),
    "syntax": (["def"], r"cell start: raised SyntaxError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_master_names_file_and_cell_and_changes_nothing(course, name, monkeypatch):
    if name == "never ends":
        monkeypatch.setattr(running, "CELL_SECONDS", 2)
    monkeypatch.chdir(ROOT)
    cells, message = BROKEN[name]
    broken = write(course / "solutions" / "01_b.ipynb", *cells)
    before = contents(course)
    with pytest.raises(NotebookError, match=rf"^{re.escape(str(broken))}, .*{message}"):
        notebooks.build(course, ["01"])
    assert contents(course) == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"", "not a notebook in format 4"),
        (b"{", "not a notebook in format 4"),
        (b"\xff\xfe\x00", "not a notebook in format 4"),
        (b'{"cells": 3, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "not a notebook in format 4"),
        (b"[]", "not a notebook in format 4"),
        (b"null", "not a notebook in format 4"),
        (
            b'{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "\\ud800"}],'
            b' "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
            "not a notebook in format 4",
        ),
    ],
)
def test_damaged_files(course, damage, message):
    (course / "solutions" / "00_a.ipynb").write_bytes(damage)
    with pytest.raises(NotebookError, match=rf"00_a\.ipynb: {message}"):
        notebooks.build(course)


def test_missing_files_and_unknown_names(course):
    with pytest.raises(NotebookError, match="there is no such file"):
        notebooks.read(course / "none.ipynb")
    with pytest.raises(NotebookError, match="no notebooks that begin with 77 in "):
        notebooks.build(course, ["77"])


def test_pasted_pictures_stay(tmp_path):
    path = write(tmp_path / "notebooks" / "a.ipynb", ("![](attachment:a.png)",), "1")
    notebook = notebooks.read(path)
    notebook.cells[0].attachments = {"a.png": {"image/png": "AAAA"}}
    path.write_text(nbformat.writes(notebook))
    assert notebooks.run(path).cells[0].attachments == {"a.png": {"image/png": "AAAA"}}


def test_what_cannot_be_written_is_an_error_and_replaces_nothing(course, built):
    built = {course / path.relative_to(folder_of(built)): content for path, content in built.items()}
    (course / "exercises").write_text("a file where the folder should be")
    before = contents(course)
    with pytest.raises(NotebookError, match=r"exercises.*: cannot be written"):
        notebooks.write(built)
    assert contents(course) == before


def test_a_missing_kernel_is_named(course, monkeypatch):
    monkeypatch.setattr(running, "KERNEL", "nothing")
    with pytest.raises(NotebookError, match="there is no Jupyter kernel called nothing"):
        notebooks.build(course)


# Plots


def plot(numbers, colour="#0072B2", label="loss", height=3.0) -> str:
    """Return a line plot as PNG in base64."""
    figure = Figure(figsize=(5, height))
    axes = figure.add_subplot()
    axes.plot(numbers, color=colour)
    axes.set(xlabel=label, ylim=(0, 1))
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return base64.b64encode(file.getvalue()).decode()


NUMBERS = [0.9, 0.5, 0.3, 0.25, 0.2]
MOVED = [0.9, 0.5, 0.32, 0.25, 0.2]


def test_a_plot_of_numbers_rounded_otherwise_is_alike():
    other = plot([number + 1e-5 for number in NUMBERS])
    assert other != plot(NUMBERS)
    assert plots.alike(plot(NUMBERS), other)


OTHERS = {
    "a moved curve": {"numbers": MOVED},
    "moved by less than a pixel": {"numbers": [number + 1e-3 for number in NUMBERS]},
    "another colour": {"colour": "#A44200"},
    "nearly the colour": {"colour": "#1A72B2"},
    "another word": {"label": "less"},
    "another size": {"height": 3.1},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_plot_is_not_alike(name):
    other = plot(**{"numbers": NUMBERS, **OTHERS[name]})
    assert not plots.alike(plot(NUMBERS), other)
    assert not plots.alike(other, plot(NUMBERS))


@pytest.mark.parametrize("damaged", ["", "a", "bm90IGEgcGljdHVyZQ=="])
def test_a_damaged_picture_is_like_none(damaged):
    assert not plots.alike(damaged, plot(NUMBERS))


def test_a_build_keeps_the_bytes_of_a_plot_that_looks_the_same(tmp_path, monkeypatch):
    """What a build runs is replaced here: the plot that it draws differs from the stored one by rounding, or more."""
    path = write(tmp_path / "notebooks" / "00_a.ipynb", "draw()")

    def drawn(picture):
        notebook = notebooks.read(path)
        notebook.cells[0].outputs = [new_output("display_data", {"image/png": picture, "text/plain": "<Figure>"})]
        return notebooks.normalise(notebook, path)

    notebooks.write({path: notebooks.to_bytes(drawn(plot(NUMBERS)))})
    rounded, moved = plot([number + 1e-5 for number in NUMBERS]), plot(MOVED)
    monkeypatch.setattr(building, "run", lambda path: drawn(rounded))
    assert notebooks.differing(notebooks.build(tmp_path)) == []
    monkeypatch.setattr(building, "run", lambda path: drawn(moved))
    assert notebooks.differing(notebooks.build(tmp_path)) == [path]
    monkeypatch.setattr(building, "run", lambda path: notebooks.normalise(notebooks.read(path), path))
    notebooks.write(notebooks.build(tmp_path))
    assert notebooks.differing(notebooks.build(tmp_path)) == []


def test_plots_belong_to_their_cells():
    old, new = ([new_code_cell(name, id=name) for name in names] for names in (["a", "b"], ["new", "b"]))
    for cell, numbers in zip(old, (NUMBERS, MOVED), strict=True):
        cell.outputs = [new_output("display_data", {"image/png": plot(numbers)})]
    for cell in new:
        cell.outputs = [new_output("display_data", {"image/png": plot([number + 1e-5 for number in MOVED])})]
    other = new[0].outputs[0].data["image/png"]
    plots.keep_stored(new_notebook(cells=new), new_notebook(cells=old))
    assert new[0].outputs[0].data["image/png"] == other
    assert new[1].outputs[0].data == old[1].outputs[0].data


def test_what_a_machine_measures_is_not_stored():
    cell = new_code_cell("print(3.1)", outputs=[new_output("stream", name="stdout", text="3.1\n")])
    kept = notebooks.normalise(new_notebook(cells=[cell]), Path("a.ipynb")).cells[0]
    assert [output.text for output in kept.outputs] == ["3.1\n"]
    cell.metadata["tags"] = ["live", "nbval-ignore-output"]
    kept = notebooks.normalise(new_notebook(cells=[cell]), Path("a.ipynb")).cells[0]
    assert (kept.outputs, kept.execution_count) == ([], 1)


def test_the_source_of_predictions_and_of_what_is_tagged_so_is_folded():
    cells = [new_code_cell("1", metadata={"tags": tags} if tags else {}) for tags in ([], ["predict"], ["folded"])]
    kept = notebooks.normalise(new_notebook(cells=cells), Path("a.ipynb")).cells
    assert [cell.metadata.get("jupyter", {}).get("source_hidden") for cell in kept] == [None, True, True]


def test_a_cell_whose_output_is_not_stored_is_not_compared():
    """And a lesson has few of them: what is stored is what the suite compares."""
    for path in COMMITTED:
        tags = [cell.metadata.get("tags", []) for cell in notebooks.read(path).cells]
        live = [own for own in tags if "live" in own]
        assert all("nbval-ignore-output" in own for own in live), path
        assert len(live) <= 1, path


CLOCK = re.compile(r"\b(perf_counter|process_time|monotonic|timeit|time\.time|benchmark\.Timer)")


def test_what_a_clock_says_is_not_stored():
    """A comparison of two times holds on one machine and fails on the next: count what there is to count."""
    for path in COMMITTED:
        timed = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code" and CLOCK.search(cell.source)]
        assert all("live" in cell.metadata.get("tags", []) for cell in timed), path


# What is committed


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_committed_notebooks_are_in_normal_form(path):
    """All but the outputs themselves: nbval runs the notebooks and compares those."""
    notebook = notebooks.read(path)
    cells = [json.dumps(cell, sort_keys=True) for cell in notebook.cells]
    notebooks.name_cells(notebook.cells)
    notebooks.mark_exercises(notebook.cells, path)
    assert [json.dumps(cell, sort_keys=True) for cell in notebook.cells] == cells
    normal = notebooks.normalise(notebook, path)
    assert path.read_bytes() == notebooks.to_bytes(normal), "run `course build`"
    if path.parent.name == "solutions":
        released = ROOT / "exercises" / path.name
        assert released.read_bytes() == notebooks.to_bytes(notebooks.release(normal, path)), "run `course build`"


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_code_cell_was_run(path):
    """nbval compares nothing in cells without a count."""
    counts = [cell.execution_count for cell in notebooks.read(path).cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert counts


def test_lessons_masters_and_releases_belong_together():
    for folder in ("notebooks", "solutions", "exercises"):
        assert sorted(path.stem for path in (ROOT / folder).glob("*.ipynb")) == sorted(LESSONS)


def test_masters_and_checks_have_the_same_exercises():
    for path in MASTERS:
        ids = [
            cell.metadata.nbgrader.grade_id
            for cell in notebooks.read(path).cells
            if cell.metadata.get("nbgrader", {}).get("solution")
        ]
        assert ids == [exercise.id for exercise in exercises().values() if exercise.lesson == path.stem]


@pytest.mark.parametrize("name", exercises())
def test_the_text_of_an_exercise_gives_its_facts(name):
    exercise = exercises()[name]
    cells = notebooks.read(ROOT / "solutions" / f"{exercise.lesson}.ipynb").cells
    marked = [index for index, cell in enumerate(cells) if cell.metadata.get("nbgrader", {}).get("grade_id") == name]
    assert marked, f"no cell is marked as the answer to {name}: run `course build {exercise.lesson[:2]}`"
    at = marked[0]
    text = next(cell.source for cell in reversed(cells[:at]) if "Difficulty" in cell.source)
    plural = "" if exercise.points == 1 else "s"
    assert (
        f"Difficulty {exercise.difficulty} of 5, about {exercise.minutes} minutes, {exercise.points} point{plural}."
        in text.splitlines()
    )
    assert re.search(rf"^## \d+\. {re.escape(exercise.title)}$", text, re.MULTILINE)


PAGES = [*COMMITTED, *sorted((ROOT / "exercises").glob("*.ipynb"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_links_between_notebooks_lead_somewhere(path):
    for place, target, anchor in links(path):
        assert (path.parent / target).exists(), f"{place}: {target}"
        if anchor and target.endswith(".ipynb"):
            assert unquote(anchor) in headings(path.parent / target), f"{place}: {target} has no heading {anchor}"


def links(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the links of a notebook's text to other files: where they stand, the file, and the anchor or ""."""
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "markdown":
            for target, anchor in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", cell.source):
                yield f"{path}, cell {cell.id}", target, anchor


def test_links_lead_from_a_lesson_deeper_and_back():
    """Links of both kinds are followed, and not skipped."""
    seen = {(path.parent.name, target) for path in PAGES for _, target, anchor in links(path) if anchor}
    assert ("deeper", "../04_retain_graph.ipynb") in seen or ("deeper", "../03_graph_freeing.ipynb") in seen
    assert any(target.startswith("deeper/") for path in PAGES for _, target, _ in links(path))
