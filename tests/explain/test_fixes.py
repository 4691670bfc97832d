"""A fix is code, with the learner's own names or with a word on those that are not."""

import linecache

import pytest

from course_utils.explain.explaining import explain
from tests.explain.test_explain import raised


def fix_of(source, file):
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    error = raised(lambda: exec(compile(source, file, "exec"), {}))
    step = error.__traceback__
    while step.tb_frame.f_code.co_filename != file:  # this file's own names are not the learner's
        step = step.tb_next
    return explain(error.with_traceback(step)).fix


def test_a_name_that_the_learner_does_not_have_is_pointed_out():
    source = "import torch\nopt = torch.optim.LBFGS([torch.ones(2, requires_grad=True)])  # model\nopt.step()\n"
    fix = fix_of(source, "/tmp/ipykernel_71/0.py")
    assert fix.splitlines()[0] == "# put your own in place of criterion, y, model, x:"


def test_a_name_that_the_learner_has_is_used():
    source = "import torch\ncriterion = model = x = y = None\nopt = torch.optim.LBFGS([torch.ones(2)])\nopt.step()\n"
    assert "in place of" not in fix_of(source, "/tmp/ipykernel_72/0.py")


@pytest.mark.parametrize(
    ("imported", "name"), [("", "torch.nn.functional.soft"), ("F = torch.nn.functional\n", "F.soft")]
)
def test_a_module_is_named_in_full_where_it_was_not_imported(imported, name):
    source = f"import torch\n{imported}s = torch.tensor([-1.0])\ntorch.distributions.Normal(0.0, s)\n"
    assert fix_of(source, f"/tmp/ipykernel_{73 + len(imported)}/0.py").startswith(f"{name}plus(s)")
