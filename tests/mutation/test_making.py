"""Which mutants are made, and which are not."""

import ast

import pytest

from tests.mutation.folding import specialised
from tests.mutation.making import mutants_of
from tests.mutation.sources import Program


def keys_of(*answers: str) -> list[str]:
    return [it.key for it in mutants_of([Program("slope", n, ast.parse(text)) for n, text in enumerate(answers)])]


LOOP = """
def fit(model, batches):
    losses = []
    for x in batches[1:]:
        if x is not None and len(x) < 3:
            continue
        with torch.no_grad():
            y = model(x).detach().mean(dim=1)
        y.backward()
        losses.append(y)
    return losses
ANSWER = fit
"""


@pytest.mark.parametrize(
    "change",
    [
        "losses.append(y) -> (dropped)",
        "y.backward() | losses.append(y) -> (swapped)",
        "x is not None and len(x) < 3 -> not (x is not None and len(x) < 3)",
        "x is not None and len(x) < 3 -> True",
        "x is not None and len(x) < 3 -> x is not None or len(x) < 3",
        "x is not None and len(x) < 3 -> x and len(x) < 3",
        "x is not None and len(x) < 3 -> x is not None and len(x) <= 3",
        "x is not None and len(x) < 3 -> x is not None and len(x) < 4",
        "continue -> break",
        "for x in batches[1:]: ... -> for x in batches[2:]: ...",
        "with torch.no_grad(): ... -> (its body alone)",
        "torch.no_grad() -> torch.enable_grad()",
        "model(x).detach() -> model(x)",
        "model(x).detach -> model(x).clone",
        "model(x).detach().mean(dim=1) -> model(x).detach().mean()",
        "model(x).detach().mean -> model(x).detach().sum",
        "y.backward() -> y.backward(retain_graph=True)",
        "return losses -> return batches",
    ],
)
def test_each_rule_makes_its_mutant(change: str) -> None:
    assert [key for key in keys_of(LOOP) if key.endswith(change)]


def test_every_mutant_is_another_program_under_a_key_of_its_own() -> None:
    found = mutants_of([Program("slope", 0, ast.parse(LOOP))])
    assert len({it.key for it in found}) == len({it.source for it in found}) == len(found)
    assert ast.unparse(ast.parse(LOOP)) not in {it.source for it in found}
    twice = keys_of("def f(x):\n    x.step()\n    x.grad.zero_()\n    x.step()\nANSWER = f")
    assert {"f: x.step() -> (dropped)", "f: x.step() -> (dropped) #2"} <= set(twice)


def test_what_two_answers_share_is_changed_once() -> None:
    shared = "def helper(x):\n    return x + 1\n"
    one, two = f"{shared}def f(x):\n    return helper(x)\nANSWER = f", f"{shared}ANSWER = helper"
    assert keys_of(one, two).count("helper: return x + 1 -> return x - 1") == 1


def test_a_right_answer_is_no_mutant() -> None:
    one, two = (f"def f(x):\n    return x {sign} 1\nANSWER = f" for sign in "+-")
    assert "f: return x + 1 -> return x - 1" in keys_of(one)
    assert "f: return x + 1 -> return x - 1" not in keys_of(one, two)


@pytest.mark.parametrize(
    "body",
    [
        "a = []\n    x.step()\n    return a",  # something new, which the other does not mention
        "seen.add(x)\n    found.append(x)\n    return x",
    ],
)
def test_neighbours_that_cannot_matter_are_not_exchanged(body: str) -> None:
    assert not [key for key in keys_of(f"def f(x, seen, found):\n    {body}\nANSWER = f") if "(swapped)" in key]


def test_a_factory_is_taken_without_what_its_flags_rule_out() -> None:
    text = """
def fit(clear=True, keep=float, mode="all", **options):
    def inner(x):
        if clear and mode == "all":
            x.zero_grad()
        else:
            x.wrong()
        x.backward(**options)
        return keep(x) if clear else x
    return inner
"""
    made = ast.unparse(specialised(ast.parse(text).body[0], ast.parse("fit(mode='all')").body[0].value))
    inside = made.partition("inner")[2]
    assert not [word for word in ("wrong", "if ", "options") if word in inside]
    assert [line for line in ("x.zero_grad()", "x.backward()", "return keep(x)") if line not in inside] == []
