"""What `step` makes of recordings. How it behaves in a browser stands in tests/browser."""

import json
import re
import sys
import time
from html import unescape

import pytest
import torch
from torch import nn

from course_utils import record_backward, step
from course_utils.pictures import frames


@pytest.fixture
def recording():
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    return record_backward((x * y + x) ** 2, x=x, y=y)


def page_data(page: str) -> dict:
    return json.loads(re.search(r'mountStepper\(document.getElementById\("stepper"\), (\{.*\})\);\n', page)[1])


def test_a_step_for_each_event(recording):
    (panel,) = step(recording).panels
    assert panel.before == "Before the pass. The graph of 5 nodes keeps 4 bytes for it."
    assert [one.caption for one in panel.steps] == recording.captions()
    assert [one.node for one in panel.steps] == [event.node for event in recording.events]
    assert [one.bytes for one in panel.steps] == [0, 0, 0, 0, 0]
    assert panel.steps[1].edges == ("1-0", "1-1")


def test_every_key_of_a_step_is_in_the_picture(recording):
    (panel,) = step(recording).panels
    for one in panel.steps:
        assert f'data-node="{one.node}"' in panel.svg
        assert f'data-key="gradient-{one.node}"' in panel.svg
        for key in one.edges:
            assert re.search(rf'data-edges="([^"]* )?{key}( [^"]*)?"', panel.svg)
        for key in one.freed:
            assert f'data-key="{key}"' in panel.svg
    assert ">turn 3: 16<" in panel.svg
    assert ">turn 4: .grad = 64<" in panel.svg
    assert panel.svg.count('class="line spent"') == 3


def test_edges_into_several_outputs_are_found():
    x = torch.ones(2, 3, requires_grad=True)
    first, second = x.unbind(0)
    (panel,) = step(record_backward((first * second).sum())).panels
    (product,) = [one for one in panel.steps if one.caption.startswith("Mul")]
    for key in product.edges:
        assert len(re.findall(rf'class="edge" data-edges="{key}"', panel.svg)) == 2, (
            "to the output, and from it to the node"
        )


def test_a_leaf_that_is_drawn_several_times():
    x = torch.ones(2, 3, requires_grad=True)
    (panel,) = step(record_backward(sum((x * number) for number in range(2, 9)).sum(), x=x)).panels
    assert panel.svg.count(f'data-node="{panel.steps[-1].node}"') == 7


def test_text(recording):
    assert str(step(recording)).splitlines() == [
        "Before the pass. The graph of 5 nodes keeps 4 bytes for it.",
        *(f"{number}. {caption}" for number, caption in enumerate(recording.captions(), 1)),
    ]


def test_several_passes_have_one_slider_and_one_scale(recording):
    x = torch.ones(100, requires_grad=True)
    longer = record_backward((x.exp().sin() + x.cos()).sum(), retain_graph=True)
    both = step(recording, longer, titles=["short", "long"])
    data = page_data(both.page())
    assert data["steps"] == len(longer.events) > len(recording.events)
    assert [panel["title"] for panel in data["panels"]] == ["short", "long"]
    assert {panel["most"] for panel in data["panels"]} == {longer.saved.bytes}
    assert str(both).startswith("short\nBefore the pass.")
    assert [panel.title for panel in step(recording, longer).panels] == ["Pass 1", "Pass 2"]


def test_an_error_is_the_last_step():
    x = torch.tensor(2.0, requires_grad=True)
    loss = x.exp() * 2
    loss.backward()
    (panel,) = step(record_backward(loss)).panels
    last = panel.steps[-1]
    assert last.failed
    assert last.caption.startswith("The pass ends at MulBackward0 with RuntimeError: Trying to backward through")
    assert panel.alt == "Backward pass over a graph of 3 nodes. In order: nothing ran. It ends with RuntimeError."
    assert f">turn {len(panel.steps)}: RuntimeError</text>" in panel.svg


def test_what_a_notebook_stores(recording):
    bundle = step(recording)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    html = bundle["text/html"]
    assert unescape(re.search(r'srcdoc="([^"]*)"', html)[1]) == step(recording).page()
    still = html.partition("</style>")[2]
    assert still.startswith(
        '<div class="course-stepper-still"><img alt="Backward pass over a graph of 5 nodes. In order: '
    )
    assert "<li>x receives 64 = 16 + 48: .grad was None and is now 64.</li>" in still
    assert "<script" not in still


def test_what_to_do_is_said_before_the_first_step_and_while_the_picture_is_not_there(recording):
    page = step(recording).page()
    how = page_data(page)["how"]
    assert how == (
        "Press Next, or the right arrow key, to go one step on. Orange is the node that runs, with the gradient that "
        "it received and those that it sends."
    )
    waiting = re.search(r'<div id="stepper">(.*?)</div><script>', page)[1]
    assert how in waiting
    assert "the steps stand below as text" in waiting
    assert "<summary>The steps as text</summary>" in page


def test_what_to_do_where_the_forward_pass_comes_first():
    how = page_data(named_pass().page())["how"]
    assert "one step on: first the forward pass, where each operation fills its box, then the backward pass." in how


def test_the_page_needs_no_network(recording, tmp_path):
    step(recording).save(tmp_path / "pass.html")
    text = (tmp_path / "pass.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert re.findall(r"(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)", text) == []


def test_names_cannot_inject_markup():
    x = torch.tensor(2.0, requires_grad=True)
    evil = "</script><script>alert(1)</script>"
    shown = step(record_backward(x * x, **{evil: x}), titles=[evil])
    assert "<script>alert" not in shown.page()
    assert page_data(shown.page())["panels"][0]["title"] == evil
    assert "<script>alert" not in shown._repr_mimebundle_()["text/html"]


def test_the_same_recording_gives_the_same_bytes(recording):
    assert step(recording).page() == step(recording).page()


def test_a_graph_of_60_nodes_stays_small():
    x = torch.rand(4, requires_grad=True)
    y = x
    for _ in range(29):
        y = (y * x).tanh()
    shown = step(record_backward(y.sum(), x=x))
    assert len(shown.panels[0].steps) == 60
    assert len(shown.page()) < 200_000
    assert len(shown._repr_mimebundle_()["text/html"]) < 500_000


def test_graphs_too_large_for_a_picture_come_as_text():
    y = x = torch.rand(4, requires_grad=True)
    for _ in range(frames.MAX_BOXES):
        y = y + 1
    shown = step(record_backward(y.sum(), x=x))
    (panel,) = shown.panels
    assert panel.svg == ""
    assert panel.trouble == (
        "No picture: the picture would have 402 boxes and 401 arrows; it is drawn up to 400 boxes and 900 arrows. "
        "Record a part of it, for example one layer. As text:"
    )
    html = shown._repr_mimebundle_()["text/html"]
    assert "<iframe" not in html
    assert "<details open>" in html
    assert "<script>" not in shown.page()


def test_without_pygraphviz_there_is_text(recording, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    (panel,) = step(recording).panels
    assert panel.svg == ""
    assert panel.trouble.endswith("Install it. As text:")


def test_the_time_for_the_largest_picture_is_bounded():
    """An unrolled LSTM is the worst graph known for Graphviz: without limits it may never end."""
    cell = nn.LSTMCell(4, 5)
    h = c = torch.zeros(1, 5)
    for _ in range(17):
        h, c = cell(torch.randn(1, 4), (h, c))
    recording = record_backward(h.sum())
    start = time.perf_counter()
    assert step(recording).panels[0].svg
    assert time.perf_counter() - start < 30  # it takes about two seconds


def test_the_widget_has_the_same_data(recording):
    shown = step(recording)
    widget = shown.widget()
    assert (widget.step, widget.data["steps"]) == (0, 5), "no result has a name, so there is no forward phase"
    assert widget.data["panels"] == page_data(shown.page())["panels"]
    assert repr(widget) == "Backward pass, step by step, at step 0"
    widget.step = 3
    assert repr(widget) == "Backward pass, step by step, at step 3"


def test_wrong_arguments(recording):
    with pytest.raises(TypeError, match=r"step\(\) got nothing to show: step\(record_backward\(loss\)\)"):
        step()
    with pytest.raises(TypeError, match=r"argument 2 of step\(\) is of type Tensor, not a Recording"):
        step(recording, torch.ones(1))
    with pytest.raises(ValueError, match="got 1 titles for 2 recordings: give a list with one title for each"):
        step(recording, recording, titles=["one"])
    with pytest.raises(ValueError, match=r"step\(\) got direction='down'; it draws in the direction of"):
        step(recording, direction="down")
    with pytest.raises(ValueError, match="got one text for 2 recordings"):
        step(recording, recording, titles="ab")


def named_pass(**options):
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    product = x * y
    out = (product + x).exp().log() ** 2
    return step(record_backward(out, x=x, y=y, product=product, out=out), **options)


def test_the_forward_pass_comes_first():
    (panel,) = named_pass().panels
    assert [one.caption for one in panel.forward] == [
        "Forward, as the code ran. It starts from x = 2, y = 3.",
        "Forward 1: product = 6 is made. MulBackward0 is recorded, and it saves other = y and self = x.",
        "Forward 2: a result without a name is made. AddBackward0 is recorded.",
        "Forward 3: a result without a name = 2981 is made. ExpBackward0 is recorded, and it saves result.",
        "Forward 4: a result without a name is made. LogBackward0 is recorded, and it saves self.",
        "Forward 5: out = 64 is made. PowBackward0 is recorded, and it saves self.",
    ]
    assert [one.bytes for one in panel.forward] == [0, 0, 0, 4, 4, 8], "leaves are not kept for the graph"
    assert panel.forward[-1].bytes == panel.bytes
    assert panel.forward[1].edges == ("4-0", "4-1")
    assert str(named_pass()).startswith(panel.forward[0].caption)
    assert (
        "<li>Forward 5: out = 64" in named_pass()._repr_mimebundle_()["text/html"].partition("course-stepper-still")[2]
    )


def test_the_forward_pass_is_left_out_where_it_is_not_known(recording):
    assert named_pass(forward=False).panels[0].forward == ()
    assert step(recording).panels[0].forward == (), "no result was named"
    x = torch.tensor(2.0, requires_grad=True)
    h = x.exp()
    h.sin().backward()
    assert step(record_backward(h * 2, x=x, h=h)).panels[0].forward == (), "what it saved is gone"


def test_places_before_the_pass_are_negative(recording):
    shown = named_pass()
    data = page_data(shown.page())
    assert (data["ahead"], data["steps"], data["asCode"]) == (6, 7, False)
    assert shown.widget().step == -6
    assert page_data(named_pass(direction="code").page())["asCode"] is True


def test_the_slider_may_begin_at_a_step_of_the_backward_pass():
    shown = named_pass(at=2)
    assert re.search(r"\}, 2\);\n", shown.page())
    assert shown.widget().step == 2


def test_values_gradients_and_factors_stand_in_the_picture():
    (panel,) = named_pass().panels
    for text in ("x = 2", "forward: product = 6", "saved other = y = 3"):
        assert f">{text}<" in panel.svg
    beside = dict(re.findall(r'<g class="beside" data-edges="([^"]*)"[^>]*>(.*?)</g>', panel.svg))
    said = {key: re.findall(r">([^<]+)</text>", label) for key, label in beside.items()}
    assert said["4-0"] == ["\u00d7 y = 3", "48"]
    assert said["4-1"] == ["\u00d7 x = 2", "32"]
    assert said["3-1"] == ["\u00d7 1", "16"]
    assert panel.alt.endswith("Values: out = 64, product = 6, x = 2, y = 3.")
    assert "beside an arrow: factor, and what was sent" in panel.svg


def test_numbers_stand_beside_arrows_of_small_pictures_only():
    x = torch.tensor(0.5, requires_grad=True)
    y = x
    for _ in range(frames._LABELLED):
        y = y.sin()
    (small,), (large,) = step(record_backward(y, retain_graph=True)).panels, step(record_backward(y.sin())).panels
    assert 'class="beside"' in small.svg
    assert 'class="beside"' not in large.svg


@pytest.mark.parametrize("at", [-1, 99, "2"])
def test_a_step_that_the_pass_has_not_is_refused(at):
    steps = len(named_pass().panels[0].steps)
    with pytest.raises(
        ValueError, match=rf"step\(\) got at={at!r}: the pass has \d+ steps, so give a number from 0 to"
    ):
        named_pass(at=at)
    assert named_pass(at=steps - 1).at == steps - 1
