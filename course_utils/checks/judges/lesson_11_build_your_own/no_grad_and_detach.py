"""Judging stage 6, `no_grad_and_detach`: two ways to cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from course_utils.checks.compare import listed
from course_utils.checks.data import Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import record
from course_utils.checks.judges.lesson_11_build_your_own.freeing import SLACK, about
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, nothing, raised, ran

_RECORDED, _PLAIN, _LEAF = [True, True], [False, False], [True, False]
_SWITCHED = {
    "inside": (_PLAIN, "`x * x` inside `with engine.no_grad()`"),
    "leaf inside": (_LEAF, "A leaf, inside the block,"),
    "made inside": (_LEAF, "A leaf that is made inside the block with requires_grad=True"),
    "after an inner block": (_PLAIN, "`x.exp()` after an inner block has ended, with the outer one still open,"),
    "after": (_RECORDED, "`x * x` after the block"),
}
_CALLED = {
    "entered later": (_PLAIN, "inside the outer one"),
    "after an inner one": (_PLAIN, "after the inner one, with the outer one still open,"),
    "left": (_RECORDED, "after both"),
}


def _has(state: list[bool]) -> str:
    return f"requires_grad={state[0]} and {'a' if state[1] else 'no'} grad_fn"


_TRIED = {
    "every": "Each operation in turn inside `with engine.no_grad()`",
    "switched": "Computing before, in and after `with engine.no_grad()`",
    "called": "Computing between the call `engine.no_grad()` and its block",
    "raising": "Computing after a block that ended in an exception",
    "detached": "Detaching a result and a leaf",
    "kept": "`((x + 1.0) * (x - 1.5)).sum()` with recording off",
    "alive": "`((x + 1.0) * (x - 1.5)).detach()`",
}


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    yield from ran(seen, _TRIED)
    if not raised(seen["switched"]):
        for name, (right, what) in _SWITCHED.items():
            mine = seen["switched"][name]
            yield Finding(name, mine == right, f"{what} has {_has(mine)}; expected {_has(right)}.")
    if not raised(seen["switched"]) and not raised(seen["called"]):
        yield from _called(seen["switched"], seen["called"])
    if not raised(seen["every"]):
        text = f"Inside `with engine.no_grad()` {listed(seen['every'])} has a graph. There nothing is recorded."
        told = not raised(seen["switched"]) and seen["switched"]["inside"] != _PLAIN  # by a finding of its own
        yield Finding("every", told or not seen["every"], text)
    if not raised(seen["raising"]):
        text = "An exception that was raised inside `with engine.no_grad()` did not come out."
        yield Finding("passed on", seen["raising"]["passed on"], text)
        state = next((it for it in seen["raising"]["after"] if it != _RECORDED), _RECORDED)
        text = f"After a block that ended in an exception `x * x` has {_has(state)}; expected {_has(_RECORDED)}."
        yield Finding("restored", state == _RECORDED, text)
    if not raised(seen["kept"]):
        text = (
            f"Inside no_grad {about(seen['kept'])} intermediate arrays stayed alive; expected none: nothing will need "
        )
        text += "them."
        yield Finding("kept", seen["kept"] <= SLACK, text)
    if not raised(seen["alive"]):
        text = (
            f"With only `((x + 1.0) * (x - 1.5)).detach()` held, {about(seen['alive'])} arrays are alive; expected 1."
        )
        yield Finding("alive", seen["alive"] <= 1 + SLACK, text)
    if not raised(seen["detached"]):
        yield from _detached(seen["detached"])


def _called(switched: Any, seen: Any) -> Iterator[Finding]:
    """Find whether it is the block that switches. What plain blocks get wrong has been told, and comes back here."""
    if any(switched[name] != right for name, (right, _) in _SWITCHED.items()):
        return
    text = f"After the call `engine.no_grad()`, before any block, `x * x` has {_has(seen['called'])}; "
    text += f"expected {_has(_RECORDED)}."
    yield Finding("called", seen["called"] == _RECORDED, text)
    if seen["called"] != _RECORDED:
        return
    for name, (right, where) in _CALLED.items():
        text = f"Where both calls of `engine.no_grad()` came before the first block, `x * x` {where} has "
        text += f"{_has(seen[name])}; expected {_has(right)}."
        yield Finding("called", seen[name] == right, text)


def _detached(seen: Any) -> Iterator[Finding]:
    yield Finding("cut", seen["state"] == _PLAIN, f"`y.detach()` has {_has(seen['state'])}; expected {_has(_PLAIN)}.")
    named = {"y": "a result y", "x": "a leaf x", "c": "a constant c", "d": "a constant d, made of a transposed array,"}
    for name in seen["copied"]:
        text = f"For {named[name]} `{name}.detach()` has memory of its own. It is to share that of {name}."
        yield Finding("shares", False, text)
    yield Finding("shares", True)
    yield Finding("numbers", seen["numbers"] == [3.0, 5.0], "`y.detach()` has other numbers than y.")
    text = "`y.detach()` is y itself. detach returns another tensor, and y keeps its graph."
    yield Finding("original", seen["other"], text)
    text = "After `y.detach()` y itself is changed. detach returns another tensor, and y keeps its graph."
    whole = seen["original"] == _RECORDED and seen["whole"] and seen["leaf"][1] == _LEAF
    yield Finding("original", whole, text)
    for name in seen["same"]:
        text = f"For a constant c `{name}.detach()` is the tensor itself. detach returns another one, of any tensor."
        yield Finding("original", False, text)
    text = f"`x.detach()` of a leaf has {_has(seen['leaf'][0])}; expected {_has(_PLAIN)}."
    yield Finding("leaf", seen["leaf"][0] == _PLAIN, text)
    text = "Behind `y.detach() * x` the node of y is found: the gradient would pass."
    yield Finding("reaches", not seen["reaches"] and seen["result"] == _RECORDED, text)


def _switch(**wrong: list[bool]) -> Callable[..., bool]:
    """Return whether exactly these moments are otherwise than they should be, in this way."""
    named = {name.replace("_", " "): how for name, how in wrong.items()}

    def seen(case: Any, seen: Observation) -> bool:
        states = seen["switched"]
        return not raised(states) and all(
            states[name] == named.get(name, right) for name, (right, _) in _SWITCHED.items()
        )

    return seen


def _cut(**wrong: Any) -> Callable[..., bool]:
    def seen(case: Any, seen: Observation) -> bool:
        return not raised(seen["detached"]) and all(seen["detached"][name] == how for name, how in wrong.items())

    return seen


STAGE = Stage("no_grad_and_detach", nothing, _judge, (record.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="no_grad and detach",
    difficulty=2,
    minutes=20,
    points=2,
    hints=(
        "One place of your code decides whether an operation is recorded. What has it to look at, besides the "
        "operands?",
        "A switch that belongs to the engine, and a context manager that turns it off and puts back what was there "
        "before, whatever happens in between. detach needs no switch: it makes a tensor of the same array.",
        "recording = True at the top. @contextmanager def no_grad(): before = the switch; set it to False; try: yield; "
        "finally: set it to before. In the function that makes results: if the switch is off or no operand requires a "
        "gradient, a plain Tensor. def detach(self): return a Tensor around self's array, without copying it.",
    ),
    misconceptions=(
        Misconception(
            "detach copies",
            "`y.detach()` copies the numbers. It is the same memory without the graph, and costs nothing.",
            _cut(state=_PLAIN, copied=["y", "x", "c", "d"], original=_RECORDED),
        ),
        Misconception(
            "detach in place",
            "`y.detach()` took the graph away from y itself. Whoever uses y later finds it cut.",
            lambda case, seen: not raised(seen["detached"]) and seen["detached"]["original"] == _PLAIN,
        ),
        Misconception(
            "detached, and a leaf again",
            "What `y.detach()` returns requires a gradient. It would collect one, like a parameter; a constant "
            "collects none.",
            _cut(state=_LEAF, copied=[]),
        ),
        Misconception(
            "not restored after an error",
            "After a block that ended in an exception nothing is recorded any more. The switch has to go back in a "
            "`finally`, or in __exit__. This check was such a block: run the cells of your engine again after the "
            "repair.",
            lambda case, seen: (
                not raised(seen["raising"])
                and seen["raising"]["passed on"]
                and seen["raising"]["after"][-1] == _PLAIN
                and _switch()(case, seen)
            ),
        ),
        Misconception(
            "errors swallowed",
            "An exception that was raised inside the block disappeared. An __exit__ that returns True says that it has "
            "been dealt with.",
            lambda case, seen: not raised(seen["raising"]) and not seen["raising"]["passed on"],
        ),
        Misconception(
            "an inner block ends the outer one",
            "Where one block with no_grad stands inside another, recording goes on after the inner one. Put back what "
            "was there before, not True.",
            _switch(after_an_inner_block=_RECORDED),
        ),
        Misconception(
            "no leaves inside",
            "A leaf that is made inside the block does not require a gradient, though it was asked to. What is off is "
            "recording; parameters are often made there.",
            _switch(made_inside=_PLAIN),
        ),
        Misconception(
            "recorded all the same",
            "Inside the block results have requires_grad=False, and a node nevertheless: everything that it keeps "
            "stays alive.",
            _switch(inside=[False, True], after_an_inner_block=[False, True]),
        ),
        Misconception(
            "never on again",
            "After the block nothing is recorded any more.",
            lambda case, seen: _switch(after=_PLAIN)(case, seen),
        ),
        Misconception(
            "the leaves are switched off",
            "Inside your block requires_grad of tensors that exist is False. What they are does not change; what is "
            "computed from them is not recorded.",
            lambda case, seen: not raised(seen["switched"]) and seen["switched"]["leaf inside"] == _PLAIN,
        ),
        Misconception(
            "no_grad without effect",
            "Inside the block everything is recorded as ever.",
            _switch(inside=_RECORDED, after_an_inner_block=_RECORDED),
        ),
    ),
)
