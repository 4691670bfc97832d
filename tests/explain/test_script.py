"""`course run SCRIPT.py`."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess:
    (folder / "train.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "course_utils", "run", "train.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_card_follows_the_traceback_on_stderr(tmp_path):
    done = run(
        tmp_path,
        """\
        import torch

        def train():
            cell, h = torch.nn.RNNCell(2, 3), torch.zeros(1, 3)
            for step in range(3):
                h = cell(torch.ones(1, 2), h)
                loss = h.sum()
                print("step", step)
                loss.backward()

        train()
        """,
    )
    assert done.returncode == 1
    assert done.stdout == "step 0\nstep 1\n"
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "train.py", line 11, in <module>\n')
    card = done.stderr.partition("\n\n")[2]
    assert card.startswith("[carried-state] `h` still holds the graph of an earlier step\n")
    assert "train.py:6 | h = cell(torch.ones(1, 2), h)  <- carried over here" in card
    assert "course_utils/explain" not in done.stderr


def test_the_script_has_its_own_arguments_name_folder_and_exit_code(tmp_path):
    (tmp_path / "helper.py").write_text("VALUE = 5\n")
    source = """\
        import pickle, sys
        from helper import VALUE

        class Point:
            pass

        pickle.loads(pickle.dumps(Point()))
        print(sys.argv, __name__, __file__, VALUE)
        sys.exit(VALUE + 2)
        """
    done = run(tmp_path, source, "--help", "--lr", "0.1")
    assert done.stdout == "['train.py', '--help', '--lr', '0.1'] __main__ train.py 5\n"
    assert (done.returncode, done.stderr) == (7, "")


def test_a_script_that_is_right_runs_as_ever(tmp_path):
    done = run(
        tmp_path, "import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\nprint(w.grad.sum())"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "tensor(4.)\n", "")


def test_a_warning_gets_a_card_after_it(tmp_path):
    done = run(tmp_path, "import torch\nh = torch.ones(2, requires_grad=True) * 2\nh.grad\nprint('done')")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.index("UserWarning: The .grad attribute") < done.stderr.index("[grad-of-non-leaf] `h.grad`")


@pytest.mark.parametrize("source", ["1 / 0", "import torch\nraise RuntimeError('second time')", "x = = 1"])
def test_other_errors_are_only_raised(tmp_path, source):
    done = run(tmp_path, source)
    assert done.returncode == 1
    assert "Error" in done.stderr
    assert "Taught in" not in done.stderr


def test_no_script_is_misuse(tmp_path):
    command = [sys.executable, "-m", "course_utils", "run", "none.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'none.py' does not exist" in done.stderr


def test_a_function_that_is_given_another_optimizer_than_the_scheduler_holds(tmp_path):
    done = run(
        tmp_path,
        """\
        import torch

        def train(opt, sched):
            opt.step()
            sched.step()

        w = torch.ones(2, requires_grad=True)
        first = torch.optim.SGD([w], lr=0.1)
        watch = torch.optim.lr_scheduler.StepLR(first, 1)
        second = torch.optim.SGD([w], lr=0.2)
        train(second, watch)
        """,
    )
    assert "[scheduler-first] `sched` holds another optimizer than `second`" in done.stderr
    assert "`sched` was built for `first`, which has not stepped" in " ".join(done.stderr.split())
