"""What `make portable` compares, and where it and the suite run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_output

from course_utils import notebooks
from tests.portable import ROOT, SETTINGS
from tests.portable import __main__ as portable
from tests.portable.answers import verdicts
from tests.test_notebooks import write


def torch_under(setting: str, code: str) -> str:
    """Return what `code` prints in a new process under a setting."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import torch\n{code}"],
        env={**os.environ, **SETTINGS[setting]},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_settings_reach_pytorch():
    assert torch_under("no vectors", "print(torch.backends.cpu.get_cpu_capability())") == "DEFAULT"
    assert torch_under("one thread", "print(torch.get_num_threads())") == "1"


def test_other_rounding_changes_last_places_and_no_exact_number():
    """And gradients with them, though not which operations run."""
    code = """
x = torch.tensor([[0.3, 0.7]], requires_grad=True)
w = torch.tensor([[0.1], [0.9]])
product = (x @ w).item()
exact = 0.3 * 0.1 + 0.7 * 0.9
print(abs(product - exact) > 3e-8, abs(product - exact) < 3e-7)
print((torch.ones(2, 3) @ torch.ones(3, 1)).sum().item(), torch.arange(4).sum().item(), torch.zeros(2).exp().tolist())
print((torch.tensor([[1.0, 5.0]]) @ torch.tensor([[1030.0], [1000.0]])).item())
y = (x @ w).exp().sum()
print(type(y.grad_fn).__name__, type(y.grad_fn.next_functions[0][0]).__name__, y._version)
print((torch.eye(2) * 1j @ torch.ones(2, 1, dtype=torch.complex64)).sum().exp().dtype)  # complex numbers stay such
"""
    assert torch_under("other rounding", code).splitlines() == [
        "True True",
        "6.0 6 [1.0, 1.0]",
        "6030.0",
        "SumBackward0 ExpBackward0 0",
        "torch.complex64",
    ]


def test_a_cell_that_differs_is_named_with_what_differs(tmp_path, monkeypatch):
    monkeypatch.setattr(portable, "ROOT", tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", "")
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    path = write(
        tmp_path / "notebooks" / "00_a.ipynb",
        ("# Title",),
        "print('always')",
        "import os\n\nprint('vectors:', os.environ.get('ATEN_CPU_CAPABILITY'))",
    )
    notebooks.write(notebooks.build(tmp_path))
    kernels = portable.install_kernels(tmp_path / "jupyter")
    assert portable.cells_that_differ(path, kernels["no vectors"]) == [
        "notebooks/00_a.ipynb, cell title-3: stored 'vectors: None', here 'vectors: default'"
    ]
    write(path, "1 / 0")
    (problem,) = portable.cells_that_differ(path, kernels["as is"])
    assert "raised ZeroDivisionError" in problem


def test_differences_are_shown_where_they_are():
    stored = [new_output("stream", text="same\n" + 80 * "a" + "1.25\n")]
    built = [new_output("stream", text="same\n" + 80 * "a" + "1.26\n")]
    assert portable.difference(stored, built) == f"stored '{27 * 'a'}1.25', here '{27 * 'a'}1.26'"
    drawing = [new_output("display_data", {"text/html": "<img src='data:image/svg+xml,%3Ctext%3E0.5%3C/text%3E'>"})]
    other = json.loads(json.dumps(drawing).replace("0.5", "0.6"))
    assert "<text>0.5</text>" in portable.difference(drawing, [nbformat.from_dict(it) for it in other])
    plots = [[new_output("display_data", {"image/png": picture})] for picture in "ab"]
    assert portable.difference(*plots) == "another plot"


@pytest.mark.parametrize(
    ("label", "found", "told"),
    [
        ("walk, right answer 1", ["correct", []], []),
        (
            "walk, right answer 1",
            ["incorrect", ["idea"], "No."],
            ["walk, right answer 1: incorrect: [['idea'], 'No.']"],
        ),
        ("walk, 'idea'", ["incorrect", ["idea"], "Other words."], []),
        ("walk, 'idea'", ["incorrect", []], ["walk, 'idea': incorrect [[]], as is ['incorrect', ['idea'], 'No.']"]),
        ("walk, 'idea'", ["correct", []], ["walk, 'idea': correct [[]], as is ['incorrect', ['idea'], 'No.']"]),
    ],
)
def test_a_verdict_that_differs_is_named(label, found, told):
    expected = {"walk, right answer 1": ["correct", []], "walk, 'idea'": ["incorrect", ["idea"], "No."]}
    assert list(portable.verdicts_that_differ(expected, {label: found})) == told


def test_the_commit_draws_the_wrong_answers():
    drawn = [list(verdicts(seed, 3, ("00",))) for seed in ("a", "a", "b")]
    assert drawn[0] == drawn[1] != drawn[2]
    for labels in drawn:
        assert len([label for label in labels if "right answer" not in label]) == 3
    everything = verdicts("a", 10**6, ("00",))
    assert set().union(*drawn) <= set(everything)
    assert everything["first_gradient, 'the value'"][:2] == ["incorrect", ["the value"]]
    assert everything["slope, right answer 2"] == ["correct", []]


# Where it runs. GitHub's workflow cannot be run here; what it names must be there.


def test_ci_runs_it_after_the_suite():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    suite, other = (
        next(n for n, line in enumerate(lines) if line.endswith(f"make {it}")) for it in ("test", "portable")
    )
    assert suite < other


def test_the_workflow_tries_every_system_and_both_pythons():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    systems = set()
    for job in workflow["jobs"].values():
        matrix = job["strategy"]["matrix"]
        assert matrix["python"] == ["3.11", "3.13"]
        assert job["runs-on"] == "${{ matrix.os }}"
        systems |= set(matrix["os"])
        for extra in matrix.get("include", []):
            assert extra["os"] in matrix["os"]
    assert systems == {"ubuntu-latest", "ubuntu-24.04-arm", "macos-latest", "windows-latest"}


def test_the_workflow_runs_what_is_there():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make (\w+)", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    tested = re.search(r"pytest -n 2 (.+)$", text, re.MULTILINE)[1].split()
    for path in [*tested, "constraints.txt"]:
        assert (ROOT / path).exists(), path
    assert 'pip install -c constraints.txt -e ".[test]"' in text
    assert "pip install -c constraints.txt -e ." in (ROOT / "README.md").read_text(encoding="utf-8")
    assert Path(tested[0]).name == "notebooks"
