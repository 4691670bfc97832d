"""The learner's copy: made, renewed, started again, and never a line lost."""

from pathlib import Path

import nbformat
import pytest
from jupyterlab_server.workspaces_handler import WORKSPACE_EXTENSION, slugify
from nbformat.sign import NotebookNotary

from course_utils import copies
from course_utils.notebooks import NotebookError, read

ROOT = Path(__file__).parents[1]
FIRST = "notebooks/00_a.ipynb"
QUESTIONS = "notebooks/questions/step.ipynb"


@pytest.fixture(autouse=True)
def own_signatures(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))


def write(path, *sources, tag=""):
    text = nbformat.v4.new_markdown_cell(sources[0], metadata={"tags": [tag]} if tag else {})
    output = nbformat.v4.new_output("stream", text="42\n")
    code = [nbformat.v4.new_code_cell(source, outputs=[output], execution_count=1) for source in sources[1:]]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[text, *code]), path)


@pytest.fixture
def course(tmp_path):
    write(tmp_path / "course" / FIRST, "# A", "print(42)")
    write(tmp_path / "course" / "exercises" / "00_a.ipynb", "# Exercises", "answer = ...")
    (tmp_path / "course" / "notebooks" / "README.md").write_text("index")
    write(tmp_path / "course" / QUESTIONS, "# Why", "print(42)")
    (tmp_path / "course" / "notebooks" / "questions" / "README.md").write_text("all questions")
    return tmp_path / "course"


@pytest.fixture
def own(course, tmp_path):
    copies.renew(course, tmp_path / "mine")
    return tmp_path / "mine"


def test_the_first_start_makes_everything_without_outputs_and_trusted(course, own):
    notebook = read(own / FIRST)
    assert copies.sources(notebook) == copies.sources(read(course / FIRST))
    assert notebook.cells[1].outputs == []
    assert notebook.cells[1].execution_count is None
    assert NotebookNotary().check_signature(notebook)
    assert (own / "exercises" / "00_a.ipynb").exists()
    assert (own / "notebooks" / "README.md").read_text() == "index"
    assert copies.renew(course, own) == []


def test_jupyterlab_finds_the_workspace_of_the_copy_under_its_own_name_for_it(course, own):
    copies.renew(course, own)
    (file,) = (own / copies.WORKSPACES).iterdir()
    assert file.name == f"{slugify(copies.WORKSPACE)}{WORKSPACE_EXTENSION}"


def test_answers_to_questions_keep_their_outputs(own):
    assert read(own / QUESTIONS).cells[1].outputs
    assert (own / "notebooks" / "questions" / "README.md").read_text() == "all questions"


def test_what_only_the_course_changed_is_renewed_and_the_old_file_kept(course, own):
    old = (own / FIRST).read_bytes()
    write(course / FIRST, "# A", "print(43)")
    (written,) = copies.renew(course, own)
    assert (written.change, written.kept) == ("renewed", own / "before" / "00_a.ipynb")
    assert written.kept.read_bytes() == old
    assert read(own / FIRST).cells[1].source == "print(43)"
    assert copies.renew(course, own) == []


def test_running_a_notebook_is_no_change_of_the_learners(course, own):
    notebook = read(own / FIRST)
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="run")]
    notebook.metadata["language_info"] = {"name": "python", "version": "3"}
    nbformat.write(notebook, own / FIRST)
    assert copies.where_they_stopped(own, "first") == FIRST
    write(course / FIRST, "# A", "print(43)")
    assert [one.change for one in copies.renew(course, own)] == ["renewed"]


@pytest.mark.parametrize("damage", [False, True])
def test_what_both_changed_is_laid_beside_once(course, own, damage):
    if damage:
        (own / FIRST).write_text("{")
    else:
        write(own / FIRST, "# A", "mine = 1")
    mine = (own / FIRST).read_bytes()
    write(course / FIRST, "# A", "print(43)")
    (written,) = copies.renew(course, own)
    assert (written.change, written.path) == ("laid beside", own / "notebooks" / "00_a.new.ipynb")
    assert (own / FIRST).read_bytes() == mine
    assert read(written.path).cells[1].source == "print(43)"
    assert copies.renew(course, own) == []
    write(course / FIRST, "# A", "print(44)")
    (later,) = copies.renew(course, own)
    assert read(later.kept).cells[1].source == "print(43)"


def test_what_only_the_learner_changed_stays(course, own):
    write(own / FIRST, "# A", "mine = 1")
    assert copies.renew(course, own) == []
    assert read(own / FIRST).cells[1].source == "mine = 1"


def test_starting_again_keeps_what_was_there_each_time(course, own):
    for number in range(2):
        write(own / FIRST, "# A", f"mine = {number}")
        written = copies.start_again(course, own, "00")
        assert {one.change for one in written} == {"started again"}
    kept = sorted(path.name for path in (own / "before").iterdir())
    assert kept == ["00_a-1.ipynb", "00_a-2.ipynb", "00_a-3.ipynb", "00_a.ipynb"]
    assert read(own / FIRST).cells[1].source == "print(42)"
    with pytest.raises(NotebookError, match="no notebook of the course begins with '07'; try a number such as 03"):
        copies.start_again(course, own, "07")


def test_it_opens_where_the_learner_stopped(course, own):
    assert copies.where_they_stopped(own, FIRST) == FIRST
    write(own / "exercises" / "00_a.ipynb", "# Exercises", "answer = 3")
    assert copies.where_they_stopped(own, FIRST) == "exercises/00_a.ipynb"


def test_only_the_copy_folds_what_settles_a_prediction(course, own):
    write(course / FIRST, "It is 42.", "print(42)", tag="settles")
    copies.renew(course, own)
    assert read(course / FIRST).cells[0].source == "It is 42."
    text = read(own / FIRST).cells[0].source
    assert text == "<details><summary>After you have run it</summary>\n\nIt is 42.\n\n</details>"


def test_the_whole_course_is_copied_and_no_answer_with_it(tmp_path):
    written = copies.renew(ROOT, tmp_path / "mine")
    names = {one.path.relative_to(tmp_path / "mine").as_posix() for one in written}
    folders = [path for folder in copies.FOLDERS for path in (ROOT / folder).glob("*.ipynb")]
    assert names == {path.relative_to(ROOT).as_posix() for path in folders}
    assert not any("solutions" in str(path) for path in (tmp_path / "mine").rglob("*"))
    settled = [cell for path in folders for cell in read(path).cells if "settles" in cell.metadata.get("tags", [])]
    assert settled
    assert all(cell.cell_type == "markdown" and not cell.source.startswith("#") for cell in settled)
