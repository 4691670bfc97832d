"""%load_ext course_utils, in a shell and in a kernel."""

import gc
import warnings
import weakref

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from traitlets.config import Config

from course_utils.explain import extension

SECOND = "import torch\nw = torch.ones(2, requires_grad=True)\nloss = w.exp().sum()\nloss.backward()\nloss.backward()"


@pytest.fixture
def shell(capsys):
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config)
    shell.run_line_magic("load_ext", "course_utils")
    yield shell
    shell.run_line_magic("unload_ext", "course_utils")


def out(shell, capsys, cell) -> str:
    capsys.readouterr()
    shell.run_cell(cell)
    return capsys.readouterr().out


def test_a_card_comes_below_the_traceback(shell, capsys):
    text = out(shell, capsys, SECOND)
    assert text.count("[same-loss-twice]") == 1
    assert text.index("RuntimeError: Trying to backward") < text.index("[same-loss-twice]")
    assert "explain/passes.py" not in text
    assert "Fix (cause certain)" in text


def test_other_errors_get_none(shell, capsys):
    assert "Taught in" not in out(shell, capsys, "{}['a']")
    assert "Taught in" not in out(shell, capsys, "1 +")
    assert "Taught in" not in out(shell, capsys, "3")


def test_a_warning_gets_a_card(shell, capsys):
    text = out(shell, capsys, "import torch\nh = torch.ones(2, requires_grad=True) * 2\nh.grad\nh.grad")
    assert text.count("[grad-of-non-leaf] `h.grad` is None") in (1, 2)
    assert warnings.showwarning.__module__ != "course_utils.explain.warned"


def test_help_can_be_short_or_off(shell, capsys):
    assert "Now: short" in out(shell, capsys, "%autograd_help short")
    text = out(shell, capsys, SECOND)
    assert "Fix (cause certain): # one backward() is enough" in text
    assert "finds nothing" not in text
    assert "finds nothing" in out(shell, capsys, "%explain")
    assert "Now: off" in out(shell, capsys, "%autograd_help off")
    assert "Taught in" not in out(shell, capsys, SECOND)
    assert "'loud'" in out(shell, capsys, "%autograd_help loud")
    assert "Now: off" in out(shell, capsys, "%autograd_help")


def test_explain_without_an_error_says_so(shell, capsys, monkeypatch):
    monkeypatch.delattr("sys.last_value", raising=False)
    assert "nothing to explain" in out(shell, capsys, "%explain")


def test_a_second_run_finds_the_line_that_wrote(shell, capsys):
    cell = "import operator, torch\nw = torch.ones(2, requires_grad=True)\ny = w.exp()\n"
    cell += "change = operator.iadd\nfor t in range(1):\n    change(y, 1)\ny.sum().backward()"
    first = out(shell, capsys, cell).partition("[in-place]")[2]
    assert "overwritten here" not in first
    assert "Fix (cause probable)" in first
    again = out(shell, capsys, f"%%explain\n{cell}").partition("[in-place]")[2]
    assert "line 3 | y = w.exp()         <- saved here" in again
    assert "line 6 | change(y, 1)        <- overwritten here" in again
    assert "Fix (cause certain)" in again
    assert not torch.is_anomaly_enabled()


def test_a_failure_of_ours_is_one_line_and_the_error_stays(shell, capsys, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(extension, "explained", fails)
    text = out(shell, capsys, SECOND)
    assert "RuntimeError: Trying to backward" in text
    assert text.count("course_utils could not explain this: its own code failed with ZeroDivisionError.") == 1


def test_nothing_is_kept_alive(shell, capsys):
    out(shell, capsys, SECOND)
    loss = weakref.ref(shell.user_ns["loss"])
    out(shell, capsys, "loss = w = None\nimport sys\nsys.last_value = sys.last_traceback = sys.last_exc = None")
    shell.InteractiveTB.tb = None  # IPython's own
    gc.collect()
    assert loss() is None


def test_unloading_leaves_nothing(shell, capsys):
    shell.run_line_magic("unload_ext", "course_utils")
    assert "Taught in" not in out(shell, capsys, SECOND)
    assert "autograd_help" not in shell.magics_manager.magics["line"]
    assert "explain" not in shell.magics_manager.magics["cell"]
    assert torch.autograd._engine_run_backward.__module__ == "torch.autograd.graph"
    shell.run_line_magic("load_ext", "course_utils")


def test_in_a_kernel_the_card_follows_the_error():
    cells = [nbformat.v4.new_code_cell(source) for source in ("%load_ext course_utils", SECOND)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, allow_errors=True, kernel_name="python3", timeout=120).execute()
    kinds = [output.output_type for output in notebook.cells[1].outputs]
    assert kinds == ["error", "display_data"]
    card = notebook.cells[1].outputs[1].data
    assert card["text/plain"].startswith("[same-loss-twice] `loss`")
    assert "line 4 | loss.backward()  <- first pass here" in card["text/plain"]
    assert 'role="note"' in card["text/html"]
