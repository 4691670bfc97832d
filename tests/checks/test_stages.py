"""What the stages of lesson 11 share: what is not there yet, what they need, who else computes, and long graphs."""

import gc
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from course_utils.checks.data import Case
from course_utils.checks.examine import examine
from course_utils.checks.judges.lesson_11_build_your_own import ORDER
from course_utils.checks.observers.lesson_11_build_your_own.engines import overflows
from course_utils.checks.observers.lesson_11_build_your_own.memory import counting
from course_utils.checks.registry import exercises, observer_for
from course_utils.checks.scenes.lesson_11_build_your_own.expressions import arrays, random_expressions, run, written
from tests.answers.lesson_11_build_your_own.backward import LastOne
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.answers.lesson_11_build_your_own.taping import taping

ROOT = Path(__file__).parents[2]
ENGINES = {"counting": Counting, "taping": taping}


def verdict_on(stage, engine):
    return examine(exercises()[stage], observer_for(exercises()[stage]), engine, seed=7)


def without(engine, *parts):
    """Return an engine that lacks some attributes."""
    names = [name for name in dir(engine) if not name.startswith("_") and name not in parts]
    return SimpleNamespace(**{name: getattr(engine, name) for name in names})


@pytest.mark.parametrize("kind", ENGINES)
def test_two_hundred_random_expressions_in_one_verdict(kind):
    *below, own = exercises()["backward"].cases(7)
    assert [case.given["stage"] for case in below] == ["record"]
    assert len(own.given["expressions"]) == 200
    verdict = verdict_on("backward", ENGINES[kind]())
    assert verdict.outcome == "correct", verdict.messages


@pytest.mark.parametrize("kind", ENGINES)
def test_ten_thousand_operations_do_not_recurse(kind):
    engine = ENGINES[kind]()
    x = y = engine.tensor(1.0, requires_grad=True)
    for _ in range(10_000):
        y = y + x
    y.backward()
    assert x.grad.numpy() == 10_001


def test_random_expressions_have_what_gradients_go_wrong_on():
    steps = [step for one in random_expressions(3, 200) for step in one["steps"]]
    assert {step[0] for step in steps} >= {"add", "multiply", "matmul", "exp", "log", "relu", "sum", "reshape", "pick"}
    assert any(len(set(step[3])) < len(step[3]) for step in steps if step[0] == "pick" and step[2] == "rows")
    assert random_expressions(3, 5) == random_expressions(3, 5) != random_expressions(4, 5)
    for one in random_expressions(3, 50):
        values = run(one, [torch.from_numpy(array) for array in arrays(one)])
        assert all(bool(value.isfinite().all()) for value in values)
        assert f"t{len(one['steps'])} = " in written(one)


def test_all_stages_ask_for_one_name():
    assert {exercises()[name].name for name in ORDER} == {"engine"}
    verdict = verdict_on("train_digits", ...)
    assert verdict.outcome == "not attempted"
    assert verdict.messages[0].startswith("`engine` still holds `...`.")


def test_a_part_that_is_missing_is_not_attempted():
    verdict = verdict_on("grad_and_sgd", without(Counting(), "SGD"))
    assert verdict.outcome == "not attempted"
    assert verdict.messages == ("Not there yet: `engine.SGD`. The table of the interface says what each does.",)
    assert not verdict.score


def test_a_stage_names_the_stage_that_it_needs_and_that_is_missing():
    verdict = verdict_on("train_digits", without(Counting(), "SGD"))
    assert verdict.outcome == "not attempted"
    assert verdict.messages[0].startswith("This stage needs stage 7, `grad_and_sgd`. Not there yet: `engine.SGD`.")


def test_a_stage_names_the_stage_that_it_needs_and_that_fails():
    verdict = verdict_on("create_graph", LastOne())
    assert verdict.outcome == "incorrect"
    assert verdict.messages[0].startswith("This stage needs stage 2, `backward`, which your engine does not pass. On ")


class LeftOff(Counting):
    """Switches recording off for a pass, and on again only where the pass ends well."""

    def run(self, output, gradient, keep, create):
        if not output.requires_grad:
            raise RuntimeError("there is no graph")
        first = self.first(output, gradient)
        self.recording = create
        found = self.passed(self.place(output), first, keep)
        self.recording = True
        return found


def test_a_switch_that_a_pass_left_off_is_named_for_what_it_is():
    engine = LeftOff()
    assert verdict_on("backward", engine).outcome == "correct"
    messages = verdict_on("save_and_free", engine).messages
    assert messages[0].startswith("In the course of this check your engine stopped recording,")
    assert "Put it back to what it was, in a `finally`, and run the cells of your engine again" in messages[0]
    messages = verdict_on("record", engine).messages  # the kernel's engine is as the check left it
    assert messages[0].startswith("For a leaf x that requires a gradient, `x * x` has no grad_fn. If your engine did")


def test_a_scene_that_raises_says_what_was_tried():
    class OneSided(Counting):
        Tensor = type("OneSided", (Counting.Tensor,), {"__radd__": lambda self, other: NotImplemented})

    assert verdict_on("record", OneSided()).messages == (
        "`3 + x` ended in TypeError: unsupported operand type(s) for +: 'int' and 'OneSided'.",
    )


def test_cutting_needs_only_recording():
    """So that every route through the course can meet its stages."""
    needed = {name: {case.given["stage"] for case in exercises()[name].cases(1)} - {name} for name in ORDER}
    assert needed["no_grad_and_detach"] == {"record"}
    assert needed["grad_and_sgd"] == needed["create_graph"] == {"record", "backward"}
    assert needed["retain_graph"] == {"record", "backward", "save_and_free"}


def test_another_package_that_computes_is_seen(monkeypatch):
    package = ModuleType("jax")
    exec("def multiply(a, b):\n    return a * b", vars(package))
    monkeypatch.setitem(sys.modules, "jax", package)

    class ByJax(Counting):
        def exp(self, a):
            package.multiply(1.0, 2.0)
            return super().exp(a)

    verdict = verdict_on("record", ByJax())
    assert verdict.misconceptions == ("another autograd",)
    assert verdict.messages[1] == "jax ran inside your engine. It is to be your own."


class _Circle:
    """Refers to itself, and runs PyTorch's code when the garbage collector finds it."""

    def __init__(self):
        self.own = self

    def __del__(self):
        torch.is_tensor(self)


def test_what_is_collected_meanwhile_does_not_count_as_another_package():
    class Littering(Counting):
        def multiply(self, a, b):
            _Circle()
            return super().multiply(a, b)

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        verdict = verdict_on("record", Littering())
    finally:
        gc.set_threshold(*before)
    assert verdict.outcome == "correct", verdict.messages


def test_an_operation_that_overflows_is_counted_whoever_asks_for_it():
    big = np.array([1e300])
    with overflows() as seen:
        big * 1e10
        np.float64(1e300) * np.float64(1e10)
        big * 2.0
    assert len(seen) == 2


def test_arrays_are_counted_whoever_holds_them():
    with counting() as alive:
        held = [np.ones((128, 128)), np.ones((128, 128))]
        circle = [np.ones((128, 128))]
        circle.append(circle)
        assert alive() == pytest.approx(3, abs=0.4)
        del held, circle
        assert alive() == pytest.approx(1, abs=0.4)


def test_the_masters_engine_passes_every_stage_as_the_notebook_leaves_it():
    space = {"__name__": "__main__"}
    for cell in json.loads((ROOT / "solutions" / "11_build_your_own.ipynb").read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and 'check("' not in source:
            exec(source, space)
    for stage in ORDER:
        verdict = verdict_on(stage, space["engine"])
        assert verdict.outcome == "correct", (stage, verdict.messages)


def test_nothing_of_the_session_changes():
    limit, error_state = sys.getrecursionlimit(), np.geterr()
    observe = observer_for(exercises()["backward"])
    (*_, case) = exercises()["backward"].cases(1)
    observe(Counting(), Case(case.name, case.given))
    assert (sys.getrecursionlimit(), np.geterr()) == (limit, error_state)
