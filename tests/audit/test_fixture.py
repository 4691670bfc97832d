"""The pytest fixture `audited`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SUITE = """\
import torch
from torch.nn import functional as F


def train(clear):
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        if clear:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward(retain_graph=clear == "keep")
        optimizer.step()


def test_right(audited):
    train(clear=True)


def test_faulty(audited):
    train(clear=False)


def test_likely(audited):
    train(clear="keep")


def test_strict(audited):
    audited.strict = True
    train(clear="keep")
"""


def test_a_test_fails_where_its_training_has_a_mistake(tmp_path):
    (tmp_path / "test_training.py").write_text(SUITE)
    # By its module, as a checkout may be newer than what is installed under the plugin's name.
    plugin = ("-p", "no:course_audit", "-p", "course_utils.audit.fixture")
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, env=None
    )
    assert "4 passed, 2 errors" in done.stdout, done.stdout
    assert "ERROR test_training.py::test_faulty" in done.stdout
    assert "ERROR test_training.py::test_strict" in done.stdout
    assert "error[no-zero-grad]" in done.stdout


def test_an_unused_fixture_costs_nothing():
    code = "import sys, course_utils.audit.fixture; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
