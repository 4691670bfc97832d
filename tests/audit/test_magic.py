"""`%%audit` in a notebook."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils.audit import magic
from course_utils.audit.finding import Finding

CELL = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    {clear}
    model(torch.ones(3, 2)).mean().backward({retain})
    optimizer.step()
print("trained")
"""


@pytest.fixture
def shell():
    shell = InteractiveShell()
    magic.register(shell)
    yield shell
    InteractiveShell.clear_instance()


def test_a_cell_is_run_and_reported_on(shell, capsys):
    shell.run_cell("%%audit\n" + CELL.format(clear="pass", retain=""))
    out = capsys.readouterr().out
    assert out.startswith("trained\n")
    assert "error[no-zero-grad] 4 of 5 steps of optimizer" in out
    assert "model(torch.ones(3, 2)).mean().backward()" in out
    assert "model" in shell.user_ns


def test_the_extension_brings_it_and_takes_it_away():
    shell = InteractiveShell()
    for command, there in (("load_ext", True), ("unload_ext", False)):
        shell.run_line_magic(command, "course_utils")
        assert ("audit" in shell.magics_manager.magics["cell"]) is there
    InteractiveShell.clear_instance()


def test_a_line_of_a_cell_is_named_by_its_number():
    finding = Finding("no-zero-grad", "error", "/tmp/ipykernel_12/345.py", 6, "", "", "", True, "", 1)
    assert "--> line 6\n" in str(finding)
    assert "--> train.py:6\n" in str(replace(finding, file="/home/train.py"))


def test_a_fix_of_several_lines_stays_together():
    finding = Finding("no-zero-grad", "error", "", 0, "", "", "first()\nsecond()", True, "", 1)
    assert "  fix: first()\n       second()\n" in str(finding)


def test_strict_raises(shell, capsys):
    cell = "%%audit --strict\n" + CELL.format(clear="optimizer.zero_grad()", retain="retain_graph=True")
    done = shell.run_cell(cell)
    assert type(done.error_in_exec).__name__ == "AuditFailed"


def test_an_error_of_the_cell_is_the_cells(shell, capsys):
    done = shell.run_cell("%%audit --strict\n" + CELL.format(clear="pass", retain="") + "1 / 0")
    assert done.success
    out = capsys.readouterr().out
    assert "ZeroDivisionError" in out
    assert "error[no-zero-grad]" in out


def test_the_extension_brings_it(capsys):
    shell = InteractiveShell()
    try:
        shell.run_line_magic("load_ext", "course_utils")
        shell.run_cell("%%audit\n" + CELL.format(clear="pass", retain=""))
        assert "error[no-zero-grad] 4 of 5 steps of optimizer" in capsys.readouterr().out
        shell.run_line_magic("unload_ext", "course_utils")
        assert "audit" not in shell.magics_manager.magics["cell"]
    finally:
        InteractiveShell.clear_instance()


def test_loading_the_extension_loads_no_check():
    code = (
        "import sys, course_utils\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "course_utils.load_ipython_extension(InteractiveShell())\n"
        "loaded = [name for name in sys.modules if name.startswith('course_utils.audit')]\n"
        "assert loaded == ['course_utils.audit', 'course_utils.audit.magic'], loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
