"""What `explain` promises besides its cards: silence, no failure of its own, nothing kept, nothing run."""

import gc
import json
import linecache
import subprocess
import sys
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from course_utils import Explanation, explain
from course_utils.ask.codes import asked
from course_utils.explain.explaining import explained


def raised(run) -> Exception:
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def twice():
    w = torch.ones(3, requires_grad=True)
    loss = (w**2).sum()
    loss.backward()
    loss.backward()


def says_what_pytorch_says():
    raise RuntimeError("Trying to backward through the graph a second time")


def asserts_what_pytorch_says():
    assert False, "No inf checks were recorded for this optimizer."  # noqa: B011, PT015


def none_of_ones_own():
    class Configuration:
        grad = None

    settings = None
    return settings.size


def number_plus_none():
    return 1 + None


SILENT = {
    "KeyError": lambda: {}["loss"],
    "ValueError": lambda: int("loss"),
    "SyntaxError": lambda: compile("loss = ", "cell", "exec"),
    "ImportError": lambda: __import__("no_such_module"),
    "ZeroDivisionError": lambda: 1 / 0,
    "JSONDecodeError": lambda: json.loads("{"),
    "IndexError": lambda: [][3],
    "recursion": lambda: (lambda f: f(f))(lambda f: f(f)),
    "own raise": says_what_pytorch_says,
    "own assert": asserts_what_pytorch_says,
    "None of another kind": none_of_ones_own,
    "number plus None": number_plus_none,
    "index of a tensor": lambda: torch.ones(2)[5],
    "unknown device": lambda: torch.ones(2, device="nonsense"),
    "backward of a string": lambda: "loss".backward(),
    "iterating a number": lambda: list(3),
    "sum of a list of numbers": lambda: [1, 2].sum(),
    "what no tensor has, of a tuple of tensors": lambda: (torch.ones(1),).append(2),
    "shape of None from nowhere": lambda: {}.get("image").shape,
    "mean of a number": lambda: (3.5).mean(),
}


@pytest.mark.parametrize("name", SILENT)
def test_silence(name):
    assert explain(raised(SILENT[name])) is None


def test_silence_for_what_is_no_error():
    assert explain(None) is None
    assert explain("RuntimeError") is None
    assert explain(RuntimeError("Trying to backward through the graph a second time")) is None  # never raised
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
        warnings.warn("The .grad attribute of a Tensor that is not a leaf", UserWarning, stacklevel=1)
    assert [explain(one) for one in caught] == [None, None]


def test_an_error_raised_from_one_of_pytorchs_is_explained_by_that():
    def step():
        try:
            twice()
        except RuntimeError as error:
            raise ValueError("step 3 failed") from error

    assert explain(raised(step)).code == "same-loss-twice"


def test_it_is_a_public_name_whatever_was_imported_before():
    import course_utils.explain.sections

    assert callable(course_utils.explain)
    assert course_utils.explain is explain
    assert isinstance(explain(raised(twice)), Explanation)


class Hostile:
    """Everything that could be asked of it fails."""

    def __getattribute__(self, name):
        raise SystemExit(name)

    def __eq__(self, other):
        raise SystemExit

    __hash__ = None


def test_it_does_not_run_the_learners_objects():
    def run():
        evil = Hostile()
        things = [evil, {"evil": evil}]
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        y += 1
        y.sum().backward()
        return evil, things

    assert explain(raised(run)).code == "in-place"


def test_a_message_that_cannot_be_read_is_no_failure():
    class Unreadable(RuntimeError):
        def __str__(self):
            raise SystemError

    def run():
        raise Unreadable

    assert explained(raised(run)) is None


def test_code_without_a_source_gets_a_card_without_lines():
    def run():
        exec("import torch\nw = torch.ones(2, requires_grad=True)\nw.exp().numpy()", {})

    card = explain(raised(run))
    assert card.code == "numpy-of-graph"


def test_names_and_lines_are_plain_text():
    source = "import torch\nw = torch.ones(2, requires_grad=True)\nw.numpy()  # <b>\x1b[31m\u202e red\n"
    linecache.cache["<ipython-input-9>"] = len(source), None, source.splitlines(keepends=True), "<ipython-input-9>"
    card = explain(raised(lambda: exec(compile(source, "<ipython-input-9>", "exec"), {})))
    assert card.where[0].text == "w.numpy()  # <b> [31m  red"
    assert all(character.isprintable() for character in str(card).replace("\n", ""))


def test_it_keeps_nothing_alive():
    class Token:
        pass

    def run():
        w = torch.ones(3, requires_grad=True)
        loss = (w.exp() * 2).sum()
        tokens.append(weakref.ref(loss))
        sentinel = Token()
        loss.grad_fn.metadata["sentinel"] = sentinel
        tokens.append(weakref.ref(sentinel))
        loss.backward()
        loss.backward()

    tokens = []
    error = raised(run)
    card = explain(error)
    frame = error.__traceback__.tb_next.tb_frame
    assert sys.getrefcount(frame) <= 4
    del error, frame
    gc.collect()
    assert card.code == "same-loss-twice"
    assert [token() for token in tokens] == [None, None]


def test_a_checkpointed_forward_is_not_run_again():
    runs = []

    def block(x):
        runs.append(1)
        return torch.tanh(x).exp()

    def run():
        x = torch.ones(3, requires_grad=True)
        y = checkpoint(block, x, use_reentrant=False)
        z = y.sigmoid()
        z += 1
        z.sum().backward()

    error = raised(run)
    before = len(runs)
    assert explain(error).code == "in-place"
    assert len(runs) == before


def test_a_graph_beyond_the_limit_is_explained_from_its_text():
    def run():
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        total = y * 1
        for _ in range(6_000):
            total = total + 1
        y += 1
        total.sum().backward()

    assert explain(raised(run)).code == "in-place"


def test_a_model_is_named_by_its_place():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 1)))
    card = explain(raised(lambda: model(torch.ones(2, 3))))
    assert card.headline == "`model[1][1]` has in_features=5, but its input ends in 4"


def test_the_card():
    model, x = nn.Linear(3, 1), torch.ones(2, 3)

    def run():
        prediction = model(x).detach()
        prediction.mean().backward()

    line = run.__code__.co_firstlineno
    assert str(explain(raised(run))).splitlines() == [
        "[no-graph-detach] `prediction.mean()` has no graph: it was cut at `model(x).detach()`",
        f"  test_explain.py:{line + 1} | prediction = model(x).detach()  <- cut here",
        f"  test_explain.py:{line + 2} | prediction.mean().backward()    <- raised here",
        "`model(x).detach()` gives the values without their graph, so nothing leads back through it.",
        "Fix (cause certain):",
        "    model(x)  # without .detach()",
        "Taught in lesson 06, 'detach() cuts one edge'.",
        asked("no-graph-detach"),
        "More: %explain in a notebook; %%explain runs a cell again to find the exact line.",
    ]


def test_it_loads_neither_ipython_nor_the_command():
    code = "import torch, course_utils.explain.explaining, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"IPython", "click", "rich", "matplotlib", "ipywidgets"}


def test_an_error_of_an_answer_is_explained_where_a_check_calls_it():
    from course_utils.checks.timelimit import time_limit

    def answer(x):
        y = x.exp()
        y *= 2
        y.sum().backward()

    def check_calls_it():
        with time_limit(5.0):
            answer(torch.ones(2, requires_grad=True))

    card = explain(raised(check_calls_it))
    assert card.code == "in-place"
    assert card.where[1].text == "y *= 2"


def test_names_given_in_many_branches_are_not_followed_for_ever():
    """25 branches that assign to each other have 25! ways through them: without a bound this never ends."""
    branches = "".join(f"    if len(str(x)) == {n}:\n        x = torch.relu(x)\n" for n in range(25))
    source = f"import torch\ndef f(x):\n{branches}    x.sum().backward()\nf(torch.ones(2))\n"
    linecache.cache["<ipython-input-8>"] = len(source), None, source.splitlines(keepends=True), "<ipython-input-8>"
    card = explain(raised(lambda: exec(compile(source, "<ipython-input-8>", "exec"), {})))
    assert card.code.startswith("no-graph")


def test_a_constant_gradient_leads_to_the_question_about_one():
    assert "for a second" in asked("not-in-graph-second-order")
