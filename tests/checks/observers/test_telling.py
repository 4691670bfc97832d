"""What observers tell at once, and the second way of observing, with decoys."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import nn

from course_utils.checks.examine import judge, observe
from course_utils.checks.guard import guarded
from course_utils.checks.observers import telling
from course_utils.checks.observers.by_hand import in_a_case, noticed
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.registry import exercises, observer_for
from course_utils.grading.controller.contradictions import contradictions
from tests.answers import RIGHT
from tests.checks.observers import test_passes, test_runs


@pytest.fixture
def told() -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()
    telling.listen(lambda what: found.update([what]))
    yield found
    telling.listen(None)
    telling.gather()


@pytest.fixture
def otherwise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(telling, "_states", [telling._State()])
    telling.observe_otherwise()
    with in_a_case():
        yield


@pytest.fixture(params=["first", "second"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "second":
        request.getfixturevalue("otherwise")
    return request.param


def test_where_nobody_listens_nothing_is_told() -> None:
    telling.tell("passes")


@pytest.mark.parametrize("name", [name for name in RIGHT if not exercises()[name].answer])
def test_right_answers_contradict_nothing_and_touch_no_decoy(name: str, way: str, told: Counter[str]) -> None:
    exercise = exercises()[name]
    for answer in RIGHT[name]:
        pairs, counts = [], []
        with guarded(1):
            for case in exercise.cases(11):
                told.clear()
                seen, _ = noticed(partial(observe, observer_for(exercise), answer, case, 5, 20))
                pairs.append((case, seen))
                telling.gather()
                counts.append(dict(told))
            assert judge(exercise, pairs).outcome == "correct"
        assert contradictions(pairs, counts) == ()


@pytest.mark.parametrize(
    "run", [run for mark in test_runs.test_every_way_to_run_a_module_is_seen_once.pytestmark for run in mark.args[1]]
)
def test_the_second_way_sees_every_run_once_and_no_decoy_is_touched(run, otherwise, told) -> None:
    model, seen = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), []
    notice(model, lambda module, inputs, result: seen.append(len(inputs)), name="runs")
    run(model, torch.ones(4, 2))
    telling.gather()
    assert seen == [1]
    assert type(model) is nn.Sequential
    assert told["runs"] + told["runs of copies"] == 1
    assert not told[telling.DECOY]


@pytest.mark.parametrize(("run", "expected"), test_passes.test_every_way_to_start_a_pass_is_seen.pytestmark[0].args[1])
def test_the_second_way_sees_every_pass(run, expected, otherwise, told) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with every_pass() as passes:
        run(x)
    telling.gather()
    assert passes == expected
    assert told == ({"passes": len(expected)} if expected else {})


def _closure(model):
    return dict(zip(model.forward.__func__.__code__.co_freevars, model.forward.__func__.__closure__, strict=True))


@pytest.mark.parametrize(
    "forge",
    [
        lambda model, x: vars(model).pop("forward"),
        lambda model, x: setattr(model, "forward", lambda x: x),
        lambda model, x: type(model).forward(model, x),
        lambda model, x: _closure(model)["told"].cell_contents.__closure__[0].cell_contents.clear(),
    ],
)
def test_who_touches_what_looks_like_an_observer_is_told(forge, otherwise, told) -> None:
    model, x = nn.Sequential(nn.Linear(2, 3)), torch.ones(1, 2)
    notice(model, lambda *given: None)
    model(x)
    forge(model, x)
    telling.gather()
    assert told[telling.DECOY] == 1
    telling.gather()
    assert told[telling.DECOY] == 1, "each decoy is asked once"


def test_who_takes_a_pass_out_of_the_engine_that_counts_is_told(otherwise, told) -> None:
    x = torch.ones(1, requires_grad=True)
    with every_pass() as passes:
        engine = torch.autograd.Variable._execution_engine
        x.sum().backward()
        getter = type(engine).run_backward.fget
        dict(zip(getter.__code__.co_freevars, getter.__closure__, strict=True))["passes"].cell_contents.clear()
    telling.gather()
    assert (len(passes), told["passes"], told[telling.DECOY]) == (1, 1, 1)


def test_a_run_is_told_before_a_list_of_it_can_be_emptied(told) -> None:
    model, seen = nn.Linear(1, 1), []
    notice(model, lambda *given: seen.append(1), name="runs")
    model(torch.ones(1))
    seen.clear()
    assert told == {"runs": 1, "runs begun": 1}


def test_runs_of_copies_are_told_apart(told) -> None:
    import copy

    model = nn.Linear(1, 1)
    notice(model, lambda *given: None, name="runs")
    copy.deepcopy(model)(torch.ones(1))
    assert told == {"runs of copies": 1, "runs begun": 1}


def test_who_listens_for_good_is_told_whoever_else_listens() -> None:
    found, others = [], []
    tell, listen_for_good = telling._teller()
    tell("lost")
    listen_for_good(found.append)
    listen_for_good(others.append)
    tell("runs")
    assert (found, others) == (["runs"], [])
