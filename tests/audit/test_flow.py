"""Where a value goes, as the source says."""

import linecache

import pytest

from course_utils.audit.flow import feeds_a_pass
from course_utils.audit.lines import Spot

CASES = {
    "a number that is printed": (
        False,
        "acc = model(x).mean()  # <- here\nprint(acc)\nloss = model(x)\nloss.backward()",
    ),
    "a target of the loss": (True, "t = model(x)  # <- here\nloss = (model(x) - t).mean()\nloss.backward()"),
    "a name that is bound again": (False, "out = model(x)  # <- here\nout = model(y)\nout.mean().backward()"),
    "around the loop": (
        True,
        "for _ in range(3):\n    loss = model(x) - t\n    loss.backward()\n    t = model(x)  # <- here",
    ),
    "around the loop, bound before": (
        False,
        "for _ in range(3):\n    out = model(x)\n    out.backward()\n    out = model(y)  # <- here\n    print(out)",
    ),
    "through a container": (True, "kept = []\nkept.append(model(x))  # <- here\nloss = sum(kept)\nloss.backward()"),
    "through an item": (True, "kept[0] = model(x)  # <- here\nloss = kept.mean()\nloss.backward()"),
    "into a scaler": (True, "out = model(x)  # <- here\nloss = out.mean()\nscaler.scale(loss).backward()"),
    "into autograd.grad": (True, "out = model(x)  # <- here\ntorch.autograd.grad(out.sum(), x)"),
    "into a function that trains": (
        True,
        "def update(t):\n    (t - 1).backward()\n\n\nt = model(x)  # <- here\nupdate(t)",
    ),
    "into a function that shows": (False, "def show(t):\n    print(t)\n\n\nt = model(x)  # <- here\nshow(t)"),
    "only in the test of a branch": (
        False,
        "score = model(x)  # <- here\nif score > 0:\n    print(1)\nloss.backward()",
    ),
}


def place(name, source):
    file = f"/flow/{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    line = next(at for at, text in enumerate(source.splitlines(), 1) if text.endswith("# <- here"))
    return Spot(file, line)


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_followed(name):
    feeds, source = CASES[name]
    assert feeds_a_pass([place(name, source)]) is feeds


def test_a_returned_value_is_followed_into_the_caller():
    source = "def guess(x):\n    return model(x)  # <- here\n\n\nt = guess(x)\n{}\n"
    inner = place("returned", source.format("print(t)"))
    assert not feeds_a_pass([inner, Spot(inner.file, 5)])
    inner = place("fed", source.format("(t - 1).sum().backward()"))
    assert feeds_a_pass([inner, Spot(inner.file, 5)])


def test_what_cannot_be_read_may_feed_anything():
    assert feeds_a_pass([Spot("/flow/missing.py", 3)])
