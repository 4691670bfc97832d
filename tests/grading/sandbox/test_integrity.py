"""What learner code changes in PyTorch, Python and the course is noticed and put back."""

import builtins
import gc
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode

from course_utils.checks import data
from course_utils.checks.observers.lesson_02_how_backward_works import jacobian
from course_utils.checks.registry import LESSONS
from course_utils.grading.sandbox.integrity import Original, used_by
from tests.test_architecture import MODULES, imports_of, printed_by

LEARNER = "course_utils.grading.sandbox.learner"
CHECKS = Path(data.__file__).parent


def _replace_code() -> None:
    data.plain.__code__ = (lambda value, depth=0: 1).__code__


def _mode() -> None:
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return function(*args, **(kwargs or {}))

    Mode().__enter__()


CHANGES = {
    "torch.autograd.grad": lambda: setattr(torch.autograd, "grad", None),
    "torch.Tensor.backward": lambda: setattr(torch.Tensor, "backward", print),
    "torch.Tensor.sum": lambda: setattr(torch.Tensor, "sum", print),  # which torch.Tensor itself does not have
    "builtins.all": lambda: setattr(builtins, "all", lambda things: True),
    "course_utils.checks.data.len": lambda: setattr(data, "len", lambda thing: 0),
    f"{jacobian.__name__}.plain": lambda: setattr(jacobian, "plain", print),
    "course_utils.checks.data.plain": _replace_code,
    "course_utils.checks.data.Array.of": lambda: setattr(data.Array, "of", print),
    "the stack of torch function modes": _mode,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_and_put_back(name: str) -> None:
    original = Original(used_by([jacobian.__name__]))
    CHANGES[name]()
    assert original.restore() == [name]
    assert original.restore() == []
    x = torch.tensor(3.0, requires_grad=True)
    (x * x).sum().backward()
    assert data.plain(x.grad) == data.Array.of(torch.tensor(6.0))
    assert not all([0])


def test_what_pytorch_replaces_when_it_is_first_used_is_no_change() -> None:
    code = "import sys\nfrom course_utils.grading.sandbox.integrity import Original\noriginal = Original([])\n"
    code += "assert 'torch._dynamo' not in sys.modules\nimport torch._dynamo\nassert original.restore() == []"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_that_observes_needs_what_may_change_unnoticed() -> None:
    for folder in ("observers", "scenes"):
        for path in (CHECKS / folder).rglob("*.py"):
            assert not re.search(r"torch\.(manual_seed|Storage)\b", path.read_text(encoding="utf-8")), path


def test_all_that_observes_a_lesson_is_watched() -> None:
    """What the source of an observer imports, also inside functions, and what that imports, and so on."""
    code = "from course_utils.grading.sandbox.warm import Warmth\nwarmth = Warmth()\n"
    code += f"for lesson in {LESSONS!r}:\n    warmth.lesson(lesson)\n"
    code += "    print(*(name for _, name, _ in warmth.original._holders))"
    for lesson, watched in zip(LESSONS, printed_by(code)[-len(LESSONS) :], strict=True):
        home = f"course_utils.checks.observers.lesson_{lesson}."
        own = [name for name in MODULES if name.startswith(home) and not name.endswith("__init__")]
        assert own
        unwatched = _needed([LEARNER, *own]) - set(watched.split())
        assert not unwatched, (lesson, sorted(unwatched))


def _needed(waiting: list[str]) -> set[str]:
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in needed or name.startswith("course_utils.explain"):  # an explanation decides nothing
            continue
        needed.add(name)
        waiting += [one if one in MODULES else one.rpartition(".")[0] for one in imports_of(MODULES[name])]
    return needed


def test_what_honest_code_does_is_no_change() -> None:
    original = Original(used_by([jacobian.__name__]))
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("cpu")
    torch.set_printoptions(precision=3)
    importlib.import_module("torch.fft")
    gc.collect()
    torch.manual_seed(1)
    assert original.restore() == []
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    torch.set_default_device(None)
    assert torch.get_default_device().type == "cpu"
