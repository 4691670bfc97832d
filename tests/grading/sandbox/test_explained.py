"""What an error of an answer means, as it leaves the sandbox: the notebook's text, and harmless where it is forged."""

from IPython.core.interactiveshell import InteractiveShell

from course_utils.checks.examine import examine
from course_utils.checks.registry import exercise_called, observer_for
from course_utils.grading.controller.pool import Grader, limits_of
from tests.grading.sandbox.attacks import SERVED
from tests.grading.sandbox.forging import complete
from tests.grading.submissions import HONEST, needs_a_sandbox, submission

TWICE = "import torch\ndef slope(x):\n    y = x.clone().requires_grad_()\n    total = (y ** 3).sum()\n"
TWICE += "    total.backward()\n    total.backward()\n    return y.grad\n"
FORGED = """
from course_utils.checks import data
from course_utils.explain.crossing import Told
def slope(x):
    made = Told({fields})
    take_over(lambda request: data.encode(data.Raised("E", "", "", 0, made)))
"""
FORGERS = {
    "wrong types": "'same-loss-twice', 1, 2, 3, 4, 5",
    "1 MB": "'same-loss-twice', 'x' * 1_000_000, (), '', '', True",
    "escape codes": "'same-loss-twice', '\\x1b[2J<b>', (), '\\u202e', '\\x00', True",
    "no such code": "'full-marks', 'All points.', (), '', '', True",
}
FORGING = {name: complete(SERVED + FORGED.format(fields=fields)) for name, fields in FORGERS.items()}


@needs_a_sandbox
def test_an_explanation_says_the_same_in_the_sandbox_and_harms_nobody_where_it_is_forged():
    grader = Grader()
    try:
        limits = limits_of(20, 500_000_000, unsafe=False)
        sources = {"honest": (TWICE,), **{name: (cell,) for name, cell in FORGING.items()}, "after": HONEST}
        found = {name: grader.grade(submission(name, *cells), limits) for name, cells in sources.items()}
    finally:
        grader.close()
    told = {name: "\n".join(result.exercises[1].messages) for name, result in found.items()}
    assert "[same-loss-twice] `total` went through backward() twice" in told["honest"]
    assert told["honest"] == "\n".join(_in_a_notebook(exercise_called("slope")).messages)
    assert all(found[name].exercises[1].score == 0 for name in FORGERS)
    assert all(len(text) < 5_000 and text.replace("\n", "").isprintable() for text in told.values())
    assert "what came is no observation: Expected `str`, got `int`" in told["wrong types"]
    assert "what came is no observation: Expected `str` of length <= 600" in told["1 MB"]
    assert "Your code raised E" in told["escape codes"]
    assert " [2J<b>" in told["escape codes"]
    assert told["no such code"].startswith("Your code raised E")
    assert "points" not in told["no such code"]
    assert {row.outcome for row in found["after"].exercises} == {"correct"}


def _in_a_notebook(exercise):
    shell = InteractiveShell()
    assert shell.run_cell(TWICE, silent=True).success
    return examine(exercise, observer_for(exercise), shell.user_ns["slope"])
