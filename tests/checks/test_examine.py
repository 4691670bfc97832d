"""From an answer to a verdict, with an exercise made for the test."""

import dataclasses
import gc
import io
import subprocess
import sys
import warnings
import weakref
from importlib import import_module
from pathlib import Path

import pytest
import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Raised, TimedOut, plain
from course_utils.checks.examine import examine
from course_utils.checks.examine import judge as judge_all
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.show import shown
from course_utils.explain.crossing import Told, ToldPlace

ROOT = Path(__file__).parents[2]


def observer(answer, case):
    x = case.given["x"].tensor()
    returned = answer(x)
    return {"returned": plain(returned), "x": plain(x)}


def cases(seed):
    generator = torch.Generator().manual_seed(seed)
    return [Case(f"size {n}", {"x": Array.of(torch.rand(n, generator=generator) + 1)}) for n in (2, 3)]


def judge(case, seen):
    x = case.given["x"].tensor()
    yield right_value(seen["returned"], x * 3, "What you returned")
    yield Finding("input", close(seen["x"], x), "Your function changed x.")


EXERCISE = Exercise(
    **{"id": "triple", "title": "Triple", "lesson": "00_start_here", "difficulty": 1, "minutes": 1, "points": 4},
    **{"call": "triple(x)", "cases": cases, "judge": judge, "hints": ("a", "b", "c")},
    misconceptions=(
        Misconception(
            "doubled", "You doubled x.", lambda case, seen: close(seen["returned"], case.given["x"].tensor() * 2)
        ),
        Misconception("endless", "It never ends.", ended=("TimedOut",)),
        Misconception("deep", "It recurses.", ended=("RecursionError",)),
    ),
)


def verdict(answer, **changes):
    return examine(dataclasses.replace(EXERCISE, **changes), observer, answer, seconds=0.2)


def test_correct():
    result = verdict(lambda x: x * 3)
    assert (result.outcome, result.score, result.messages) == ("correct", 4, ())
    assert {finding.prop for finding in result.findings} == {"value", "input"}
    assert all(finding.ok for finding in result.findings)


def test_an_end_that_others_share_names_no_idea_by_itself():
    doubled = dataclasses.replace(EXERCISE.misconceptions[0], ended=("ValueError",), ended_alone=False)
    assert verdict(lambda x: int("no"), misconceptions=(doubled,)).misconceptions == ()
    ends = verdict(lambda x: x * 2 if len(x) == 2 else int("no"), misconceptions=(doubled,))
    assert ends.misconceptions == ("doubled",)


def test_not_attempted():
    result = verdict(...)
    assert result.outcome == "not attempted"
    assert result.messages == (
        "`triple` still holds `...`. Put your answer there, run that cell, then this check again.",
    )


def test_each_failed_property_is_named_once_with_its_case():
    def wrong(x):
        result = x * 3 + 0.5
        x.zero_()
        return result

    result = verdict(wrong)
    assert result.outcome == "incorrect"
    assert len(result.messages) == 2
    assert "differs in 2 of 2 numbers" in result.messages[0]
    assert result.messages[0].endswith("(case: size 2)")
    assert result.messages[1] == "Your function changed x. (case: size 2)"


def test_a_misconception_comes_first():
    result = verdict(lambda x: x * 2)
    assert result.misconceptions == ("doubled",)
    assert result.messages[0] == "You doubled x."


def test_a_misconception_must_explain_every_failed_case():
    assert verdict(lambda x: x * 2 if len(x) == 2 else x * 5).misconceptions == ()
    assert verdict(lambda x: x * 2 if len(x) == 2 else x * 3).misconceptions == ("doubled",)


def test_an_exception_is_the_learners_with_their_line():
    def broken(x):
        return undefined_name + x  # noqa: F821

    result = verdict(broken)
    assert result.outcome == "error"
    first, second = result.messages[0].splitlines()
    assert first == "Your code raised NameError: name 'undefined_name' is not defined (case: size 2)"
    assert second.strip().startswith("line ")
    assert second.endswith("return undefined_name + x  # noqa: F821")


def test_an_error_of_pytorchs_is_explained_in_the_learners_names_and_lines():
    def twice(x):
        weight = torch.ones_like(x, requires_grad=True)
        total = (weight * x).sum()
        total.backward()
        total.backward()
        return weight.grad

    (message,) = verdict(twice).messages
    assert "\n[same-loss-twice] `total` went through backward() twice\n" in message
    assert message.count("| total.backward()  <- ") == 2
    assert message.endswith(".")
    assert "%explain" not in message


def test_an_explanation_keeps_nothing_of_the_answer_alive():
    made = []

    def fails(x):
        weight = torch.ones_like(x, requires_grad=True)
        made.append(weakref.ref(weight))
        return (weight * x).numpy()

    assert "[numpy-of-graph]" in verdict(fails).messages[0]
    gc.collect()
    assert [there() for there in made] == [None, None]


@pytest.mark.parametrize("trouble", [ValueError, SystemExit, RecursionError])
def test_a_verdict_without_an_explanation_is_given_where_explaining_fails(monkeypatch, trouble):
    def fails(*given):
        raise trouble

    monkeypatch.setattr(import_module("course_utils.explain.explaining"), "explain", fails)
    assert "Your code raised RuntimeError" in verdict(lambda x: x.backward()).messages[0]


def test_an_explanation_that_was_made_up_is_text_and_decides_nothing():
    forged = Told("same-loss-twice", "\x1b[2J<script>", (ToldPlace("\u202e", 3, "</code>"),), "why", "fix", True)
    pairs = [(case, Raised("E", "", explanation=forged)) for case in cases(0)]
    result = judge_all(EXERCISE, pairs)
    assert (result.outcome, result.score) == ("error", 0)
    seen = shown(EXERCISE, result)
    assert "\x1b" not in seen.text
    assert "\u202e" not in seen.text
    assert "<script>" not in seen.html
    assert "&lt;script&gt;" in seen.html
    unknown = Told("full-marks", "", (), "", "", True)
    assert judge_all(EXERCISE, [(cases(0)[0], Raised("E", "", explanation=unknown))]).messages == (
        "Your code raised E (case: size 2)",
    )


def test_an_exception_inside_a_library_is_blamed_on_the_line_that_called_it():
    def broken(x):
        return torch.cat([x, 3])

    assert "return torch.cat([x, 3])" in verdict(broken).messages[0]


@pytest.mark.parametrize("leave", [SystemExit, GeneratorExit, BaseException])
def test_leaving_is_an_error_too(leave):
    def leaving(x):
        raise leave("bye")

    assert verdict(leaving).outcome == "error"


def test_the_learners_own_interrupt_goes_through():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict(interrupted)


def test_endless_code_is_stopped_and_says_so():
    def endless(x):
        while True:
            pass

    result = verdict(endless)
    assert result.outcome == "incorrect"
    assert result.messages == (
        "It never ends.",
        "Your code was still running after 0.2 seconds and was stopped. (case: size 2)",
    )


FIRST = """
import sys
import torch
from course_utils.checks.examine import examine
from course_utils.checks.registry import exercises, observer_for
from tests.answers import RIGHT
exercise = exercises()[sys.argv[1]]
observer = observer_for(exercise)
answer = next(answer for answer in RIGHT[exercise.id] if sys.argv[2] in answer.__code__.co_names)
before = "torch._dynamo" in sys.modules
first, second = (examine(exercise, observer, answer, seconds=0.5) for _ in range(2))
print(before, "torch._dynamo" in sys.modules, first.outcome, first == second)
"""


@pytest.mark.parametrize(
    ("exercise", "name", "loaded"), [("jacobian", "jacrev", "False True"), ("hvp", "jvp", "False True")]
)
def test_the_first_verdict_of_a_process_is_like_the_second(exercise, name, loaded):
    """PyTorch imports for seconds at the first jacrev (torch._dynamo), gradient with a seed (sympy) and so on."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST, exercise, name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == f"{loaded} correct True"


def test_deep_recursion_is_an_error_with_its_misconception():
    def deep(x):
        return deep(x)

    result = verdict(deep)
    assert result.outcome == "error"
    assert result.misconceptions == ("deep",)


def test_an_exception_that_cannot_be_printed():
    class Sly(Exception):
        def __str__(self):
            raise RuntimeError

    def broken(x):
        raise Sly

    assert "(its message could not be made into text)" in verdict(broken).messages[0]


def test_warnings_are_kept():
    def warns(x):
        import warnings

        warnings.warn("deprecated", UserWarning, stacklevel=1)
        return x * 3

    assert verdict(warns).warnings == ("UserWarning: deprecated",)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (3, "`triple` is of type int, but this exercise asks for a function, called as triple(x). Give the function"),
        (torch.ones(2), "`triple` is of type Tensor, but this exercise asks for a function"),
        (
            torch.nn.Linear,
            "`triple` cannot be called as triple(x): its own parameters are (in_features, out_features, ",
        ),
        (
            torch.autograd.Function,
            "`triple` is a Function, but this exercise asks for a function, called as triple(x). What is called is its "
            "`apply`.",
        ),
        (lambda: 0, "`triple` cannot be called as triple(x): its own parameters are ()."),
        (lambda a, b: 0, "`triple` cannot be called as triple(x): its own parameters are (a, b)."),
    ],
)
def test_an_answer_of_the_wrong_kind(answer, message):
    result = verdict(answer)
    assert result.outcome == "incorrect"
    assert result.messages[0].startswith(message)


def test_generators_and_coroutines_return_nothing_yet():
    def generator(x):
        yield x * 3

    async def coroutine(x):
        return x * 3

    assert "`triple` uses `yield`" in verdict(generator).messages[0]
    assert "`triple` uses `async`" in verdict(coroutine).messages[0]


@pytest.mark.parametrize("right", [torch.nn.Module.__call__, lambda x, scale=3: x * scale, lambda *args: args[0] * 3])
def test_any_callable_that_fits_is_tried(right):
    assert verdict(right).messages == () or right is torch.nn.Module.__call__


def test_a_function_where_a_value_is_asked_for():
    result = examine(dataclasses.replace(EXERCISE, call=None), lambda answer, case: {}, lambda: 3)
    assert result.messages == ("`triple` is of type function, but this exercise asks for a value.",)


def test_only_plain_data_reaches_the_judge():
    received = []

    def spy(case, seen):
        received.append((case, seen))
        return [Finding("seen", True)]

    assert verdict(lambda x: x, judge=spy).outcome == "correct"
    for _, seen in received:
        assert all(isinstance(value, Array) for value in seen.values())


def test_a_timed_out_case_ends_the_examination():
    ran = []

    def endless(x):
        ran.append(1)
        while True:
            pass

    verdict(endless)
    assert len(ran) == 1
    assert TimedOut(0.2).seconds == 0.2


# Answers that do harm: each gets a verdict, and the session is as it was.


class Unprintable(Exception):
    def __str__(self):
        raise SystemExit


class Endless(Exception):
    def __str__(self):
        while True:
            pass


class BadSignature:
    __signature__ = 42

    def __call__(self, x):
        return x * 3


class Unreadable:
    def __getattribute__(self, name):
        raise SystemExit


def raising(error):
    def answer(x):
        raise error

    return answer


def replaces_stdout(x):
    sys.stdout = io.StringIO()
    return x * 3


def closes_stdout(x):
    sys.stdout.close()
    return x * 3


def lowers_the_recursion_limit(x):
    sys.setrecursionlimit(60)
    return x * 3


def moves_the_default_device(x):
    torch.set_default_device("meta")
    return x * 3


def warns_with_a_broken_warning(x):
    class Broken(UserWarning):
        def __str__(self):
            raise RuntimeError

    torch.set_default_dtype(torch.float64)
    warnings.warn(Broken("a"), stacklevel=1)
    return x * 3


HARMFUL = {
    "unprintable": (raising(Unprintable()), "error", "(its message could not be made into text)"),
    "endless text": (raising(Endless()), "error", "(its message could not be made into text)"),
    "half a character": (raising(ValueError("\ud800")), "error", "ValueError: \\ud800"),
    "a long text": (raising(ValueError("a" * 10_000)), "error", "... (10,000 characters)"),
    "no signature": (BadSignature(), "correct", ""),
    "unreadable": (Unreadable(), "error", "'Unreadable' object is not callable"),
    "a huge number": (lambda x: 2**70, "incorrect", "is something of type int, too large to compare"),
    "a complex number": (lambda x: x + 0j, "incorrect", "has dtype complex64; expected float32"),
    "a sparse tensor": (lambda x: x.to_sparse(), "incorrect", "is something of type sparse coo tensor"),
    "on meta": (lambda x: x.to("meta"), "incorrect", "is something of type tensor on the device meta"),
    "exec": (lambda x: exec("1/0"), "error", 'exec("1/0")'),
    "replaces stdout": (replaces_stdout, "correct", ""),
    "closes stdout": (closes_stdout, "correct", ""),
    "recursion limit": (lowers_the_recursion_limit, "correct", ""),
    "default device": (moves_the_default_device, "incorrect", "the default device is meta; before, it was cpu."),
    "broken warning": (warns_with_a_broken_warning, "error", "RuntimeError"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_answers(name, capsys):
    answer, outcome, words = HARMFUL[name]
    before = sys.getrecursionlimit(), sys.stdout, torch.get_default_device(), torch.get_default_dtype(), sys.gettrace()
    result = examine(EXERCISE, observer, answer, seconds=1)
    after = sys.getrecursionlimit(), sys.stdout, torch.get_default_device(), torch.get_default_dtype(), sys.gettrace()
    assert result.outcome == outcome, result.messages
    assert words in "\n".join(result.messages)
    assert after == before
    print("still here")
    shown = capsys.readouterr()
    assert shown.out == "still here\n"
    assert shown.err == ""


def test_a_flood_of_text_is_cut(capsys):
    def floods(x):
        print("a" * 1_000_000)
        return x * 3

    assert verdict(floods).outcome == "correct"
    shown = capsys.readouterr().out
    assert len(shown) < 300_000
    assert "... and more, which is not shown" in shown


def test_many_warnings_are_counted():
    def warns(x):
        for number in range(20):
            warnings.warn(f"number {number}", UserWarning, stacklevel=1)
        return x * 3

    assert verdict(warns).warnings[-1] == "and 15 more warnings"


def test_a_judge_that_fails_is_not_blamed_on_the_learner():
    def failing(case, seen):
        raise ZeroDivisionError

    result = verdict(lambda x: x * 2, judge=failing)
    assert result.outcome == "incorrect"
    assert result.misconceptions == ()
    assert result.messages[0].startswith("The check itself failed on your answer (ZeroDivisionError).")


def test_a_misconception_that_cannot_read_what_was_seen_explains_nothing():
    blind = Misconception("blind", "It is blind.", lambda case, seen: seen["not there"] > 1)
    assert verdict(lambda x: x * 5, misconceptions=(blind,)).misconceptions == ()


def test_messages_come_in_the_order_of_the_cases():
    def judge_two(case, seen):
        yield Finding("a", False, "first a")
        yield Finding("b", case.name == "size 2", "then b")

    result = verdict(lambda x: x, judge=judge_two)
    assert [message.partition(" (")[0] for message in result.messages] == ["first a", "then b"]
