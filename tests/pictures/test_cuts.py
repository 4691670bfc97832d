"""Pictures of cuts: what is told, and what is checked of it."""

import re

import numpy as np
import pytest
import torch

from course_utils import draw, record_backward
from course_utils.graph.memory import memory_of
from tests.answers.lesson_11_build_your_own.counting import Counting
from tests.pictures.test_svg import legend, texts


@pytest.fixture
def named():
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * x
    cut = y.detach()
    assert memory_of(cut) == memory_of(y)
    return {"x": x, "w": w, "y": y, "cut": cut, "z": y * w + cut}


def test_a_detached_tensor_stands_apart(named):
    picture = draw(named["z"], **named, cuts={"cut": "z"})
    assert {"cut (2,)", "needs no gradient", "has y's memory"} <= set(texts(picture))
    assert picture.svg.count('class="cut"') == 2, "a line to z, and a line to y"
    assert picture.svg.count('class="cross"') == 1, "a cross where the link to z is missing"
    assert picture.svg.count('stroke-dasharray="1.5 4"') == 1
    assert "dashed, and a cross: no link, no gradient passes" in legend(picture)
    assert "dotted: its numbers came from there" in legend(picture)
    told = "cut (2,) went into z and has no link: no gradient passes, though it has y's memory."
    assert picture.alt.endswith(told)
    assert picture.text.endswith(told)
    assert not re.search('class="cut"|class="cross"|[.]cross', str(draw(named["z"], **named)._repr_mimebundle_()))


def test_values_of_a_cut_tensor(named):
    picture = draw(named["z"], **named, cuts={"cut": "z"}, values=True)
    shown = texts(picture)
    assert shown[shown.index("cut (2,)") + 1] == "[1 4]"


def test_what_a_cut_tensor_was_made_from_can_be_told(named):
    copied = torch.from_numpy(named["y"].detach().numpy() * 2)
    z = named["y"] * named["w"] + copied
    picture = draw(z, **(named | {"copied": copied, "z": z}), cuts={"y": "copied", "copied": "z"})
    assert {"copied (2,)", "needs no gradient", "was made from y"} <= set(texts(picture))
    path = r'<path class="(cut|cross)" d="M([-0-9.]+),([-0-9.]+)[^"]*"( stroke-dasharray="[^"]*")?'
    lines = re.findall(path, picture.svg)
    assert [kind for kind, *_ in lines] == ["cut", "cut", "cross"], "a line and a cross to z, a line to y"
    assert [dashes for *_, dashes in lines] == [' stroke-dasharray="5 3"', ' stroke-dasharray="1.5 4"', ""]
    assert float(lines[2][2]) > float(lines[1][2]) - 8, "the cross stands on the dotted line, below the cut tensor"
    assert {"dashed: no link, no gradient passes", "a cross on it: not recorded"} <= set(legend(picture))
    assert picture.alt.endswith(
        "copied (2,) went into z and has no link: no gradient passes, though it was made from y."
    )
    with pytest.raises(ValueError, match="but other is not in the drawn graph"):
        draw(z, **(named | {"copied": copied, "z": z}), other=z.exp(), cuts={"other": "copied", "copied": "z"})


def test_a_result_of_no_grad_has_no_memory_in_the_graph(named):
    with torch.no_grad():
        h = named["x"].exp()
    p = h * named["w"]
    z = p + h
    picture = draw(z, w=named["w"], h=h, p=p, z=z, cuts={"h": ("p", "z")})
    assert texts(picture).count("h (2,)") == 2
    assert [picture.svg.count(f'class="{kind}"') for kind in ("cut", "cross")] == [2, 2], "a line and a cross each"
    assert "dotted: its numbers came from there" not in legend(picture)
    assert "memory" not in picture.alt


def test_a_saved_tensor_is_called_by_itself_and_not_by_what_shares_its_memory():
    x = torch.tensor(2.0, requires_grad=True)
    y = x.exp()
    detached = y.detach()
    assert "saved other = detached" in texts(draw(x * detached, y=y, detached=detached, x=x))


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ({"cut": "loss"}, "no tensor named 'loss': add loss=loss"),
        ({"gone": "z"}, "no tensor named 'gone': add gone=gone"),
        ({"w": "z"}, "w needs a gradient: its link to z is drawn as an arrow, and is no cut"),
        ({"cut": "side"}, "side is not in the drawn graph"),
        ({"cut": "y"}, "MulBackward0, which made y, has a link for each of its inputs: cut is none of them"),
    ],
)
def test_what_the_graph_contradicts_is_refused(named, cuts, message):
    side = named["w"] * 2
    with pytest.raises(ValueError, match=message):
        draw(named["z"], **named, side=side, cuts=cuts)


def test_a_recorded_pass_shows_the_cut_beside_what_arrived():
    w = torch.tensor(2.0, requires_grad=True)
    h = w * 10
    c = h.detach()
    out = h * c
    recording = record_backward(out, w=w, h=h, c=c, out=out)
    plain, picture = draw(recording), draw(recording, h=h, c=c, out=out, cuts={"c": "out"})
    assert {"c = 20", "needs no gradient", "has h's memory", "turn 3: .grad = 200"} <= set(texts(picture))
    assert [picture.svg.count(f'class="{kind}"') for kind in ("cut", "cross")] == [2, 1]
    told = "c = 20 went into out and has no link: no gradient passes, though it has h's memory."
    assert (picture.alt, picture.text) == (f"{plain.alt} {told}", f"{plain.text}\n{told}")
    with pytest.raises(ValueError, match="no tensor named 'c': add c=c"):
        draw(recording, out=out, cuts={"c": "out"})
    with pytest.raises(ValueError, match="w needs a gradient: its link to out is drawn as an arrow"):
        draw(recording, w=w, out=out, cuts={"w": "out"})
    with pytest.raises(TypeError, match=r"draw\(\) got c=int"):
        draw(recording, c=20, out=out, cuts={"c": "out"})


def test_an_engine_of_your_own_shows_none():
    x = Counting().tensor(np.ones(2), requires_grad=True)
    with pytest.raises(ValueError, match="cuts in graphs of PyTorch's tensors only"):
        draw(x.exp(), x=x, cuts={"x": "y"})
    with pytest.raises(ValueError, match="cuts in graphs of PyTorch's tensors only"):
        draw(record_backward(x.exp()), x=x, cuts={"x": "y"})
