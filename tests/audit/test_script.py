"""`course audit`: a script as it is, its output its own, and the results as text and data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TRAINING = """\
import sys
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randint(3, (16,))
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    {clear}
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward({retain})
    optimizer.step()
print("given", *sys.argv[1:], __name__)
{end}
"""


@pytest.fixture
def run(tmp_path):
    def running(*options, clear="optimizer.zero_grad()", retain="", end=""):
        script = tmp_path / "train.py"
        script.write_text(TRAINING.format(clear=clear, retain=retain, end=end))
        results = tmp_path / "results.json"
        command = [sys.executable, "-m", "course_utils", "audit", str(script), *options, "--json", str(results)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        return done, json.loads(results.read_text()) if results.exists() else None

    return running


def test_a_right_script(run, tmp_path):
    done, results = run("--epochs", "2", "--sarif", str(tmp_path / "results.sarif"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "given --epochs 2 __main__\n"
    assert set(results) == {"findings", "error", "watched"}
    assert results["findings"] == []
    assert results["error"] is None
    assert results["watched"]["steps"] == results["watched"]["backwards"] == 6
    assert "nothing found" in done.stderr
    assert json.loads((tmp_path / "results.sarif").read_text())["version"] == "2.1.0"


def test_a_faulty_script(run):
    done, results = run(clear="pass")
    assert done.returncode == 1
    (finding,) = results["findings"]
    assert (finding["code"], finding["level"], finding["line"]) == ("no-zero-grad", "error", 12)
    assert Path(finding["file"]).name == "train.py"
    assert "error[no-zero-grad]" in done.stderr
    assert "error[" not in done.stdout


def test_strict_counts_what_is_likely(run):
    done, results = run(retain="retain_graph=True")
    assert done.returncode == 0
    assert [finding["level"] for finding in results["findings"]] == ["likely"]
    done, _ = run("--strict", retain="retain_graph=True")
    assert done.returncode == 1


def test_a_script_that_raises(run):
    done, results = run(clear="pass", end="loss.backward()")
    assert done.returncode == 1
    assert [finding["code"] for finding in results["findings"]] == ["no-zero-grad"]
    assert results["error"]["exit_code"] == 1
    assert results["error"]["headline"]
    assert "Trying to backward through the graph a second time" in done.stderr
    assert 'train.py", line 15, in <module>' in done.stderr
    assert "course_utils" not in done.stderr.partition("RuntimeError")[0]


def test_a_script_that_exits(run):
    done, results = run(end="sys.exit(3)")
    assert done.returncode == 1
    assert results["error"]["exit_code"] == 3
    assert results["error"]["code"] == "script-exit"
    done, results = run(end="sys.exit(0)")
    assert done.returncode == 0
    assert results["error"] is None
    done, results = run(end="sys.exit('no data')")
    assert (done.returncode, results["error"]["exit_code"]) == (1, 1)
    assert "no data" in done.stderr


def test_misuse(run, tmp_path):
    def course(*arguments):
        command = [sys.executable, "-m", "course_utils", "audit", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)

    assert course().returncode == 2
    missing = course(str(tmp_path / "none.py"))
    assert missing.returncode == 2
    assert "none.py" in missing.stderr
    (tmp_path / "train.py").write_text("")
    nowhere = course(str(tmp_path / "train.py"), "--json", str(tmp_path / "none" / "results.json"))
    assert nowhere.returncode == 2
    assert "there is no folder" in nowhere.stderr
