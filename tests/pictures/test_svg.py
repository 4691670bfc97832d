"""Pictures of graphs."""

import re
import sys
import time
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest
import torch

from course_utils import draw, record_backward
from course_utils.pictures import layout


@pytest.fixture
def x() -> torch.Tensor:
    return torch.ones(2, 3, requires_grad=True)


def elements(picture) -> list[ET.Element]:
    return list(ET.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}text"))


def texts(picture) -> list[str]:
    return [element.text for element in elements(picture) if element.get("class") != "legend"]


def legend(picture) -> list[str]:
    return " | ".join(element.text for element in elements(picture) if element.get("class") == "legend").split(" | ")


def test_names_saved_tensors_and_leaves_are_drawn(x):
    w = torch.ones(2, 3, requires_grad=True)
    y = x * w
    picture = draw(y.exp().sum(), x=x, w=w, y=y)
    shown = texts(picture)
    for text in (
        "SumBackward0",
        "ExpBackward0",
        "forward: y",
        "x (2, 3)",
        "w (2, 3)",
        "saved self = x",
        "saved other = w",
    ):
        assert text in shown
    assert "green: kept for backward" in legend(picture)
    assert "freed" not in " ".join(shown)


def test_freed_tensors_are_struck_through(x):
    loss = x.exp().sum()
    loss.backward()
    picture = draw(loss)
    assert "freed result" in texts(picture)
    assert 'text-decoration="line-through">freed result<' in picture.svg
    assert "struck through: freed" in legend(picture)
    assert picture.alt.endswith("Saved tensors freed at 1 places.")


def test_modified_and_packed_tensors_are_drawn(x):
    y = x.exp()
    z = y * 2
    with torch.no_grad():
        y.add_(1)
    assert "saved result (2, 3), written to since" in texts(draw(z))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.detach(),), lambda p: p[0]):
        z = x.exp()
    assert "saved result, packed by a hook" in texts(draw(z))


def test_a_saved_view_names_its_owner():
    layer = torch.nn.Linear(4, 4)
    shown = texts(draw(layer(torch.ones(2, 4, requires_grad=True)), **dict(layer.named_parameters())))
    assert "saved mat2 (4, 4), view of weight" in shown, "the transposed weight is not the weight"


def test_outputs_of_multi_output_nodes_are_named(x):
    first, second = x.unbind(0)
    shown = texts(draw(first * second, first=first, second=second))
    assert "forward: first, second (output 1)" in shown
    assert {"output 0", "output 1"} <= set(shown)


def test_a_leaf_with_many_uses_is_drawn_at_each(x):
    picture = draw(sum(x * number for number in range(2, 9)), x=x)
    assert texts(picture).count("x (2, 3)") == 7
    assert "dashed: one leaf, drawn at each use" in legend(picture)


def test_alt_text_describes_the_picture(x):
    picture = draw((x * x).sum(), x=x)
    assert picture.alt == (
        "Backward graph of 3 nodes and 3 edges, with the leaves x (2, 3). SumBackward0 passes gradients to "
        "MulBackward0. MulBackward0 passes gradients to x (2, 3) and x (2, 3)."
    )
    bundle = picture._repr_mimebundle_()
    assert bundle["text/html"].startswith(f'<img alt="{picture.alt}" class="course-picture" src="data:image/svg+xml,')
    assert unquote(re.search(r'src="data:image/svg\+xml,([^"]*)"', bundle["text/html"])[1]) == picture.svg
    assert bundle["text/plain"] == picture.text


def test_names_cannot_inject_markup(x):
    picture = draw((x * x).sum(), **{'<script>"&': x})
    assert "<script>" not in picture.svg
    assert '<script>"& (2, 3)' in texts(picture)
    assert "<script>" not in picture._repr_mimebundle_()["text/html"]


def test_text_says_the_same(x):
    y = x * x
    assert draw(y.sum(), x=x, y=y).text.splitlines() == [
        "0 SumBackward0   -> 1",
        "1 MulBackward0   -> 2, 2  [forward: y; saved other = x; saved self = x]",
        "2 AccumulateGrad leaf (2, 3) float32  [x (2, 3)]",
    ]


def test_the_same_graph_gives_the_same_bytes(x):
    assert draw((x * x).sum(), x=x).svg == draw((x * x).sum(), x=x).svg


def test_no_graph_gives_text():
    picture = draw(torch.ones(3))
    assert picture.svg is None
    assert str(picture) == "no graph: nothing was recorded for these tensors"
    assert "text/html" not in picture._repr_mimebundle_()
    with pytest.raises(ValueError, match="no picture to save: no graph"):
        picture.save("x.svg")


def test_large_graphs_come_as_text(x):
    y = x
    for _ in range(layout.MAX_BOXES):
        y = y + 1
    picture = draw(y)
    assert picture.svg is None
    assert re.match(r"No picture: the picture would have 201 boxes and 200 arrows; it is drawn up to 200", picture.text)
    assert picture.text.endswith("... and 101 more nodes")


def test_without_pygraphviz_there_is_text(x, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    picture = draw(x * x)
    assert picture.svg is None
    assert "`pip install pygraphviz` gives it" in picture.text
    assert "MulBackward0" in picture.text


def test_layout_time_is_bounded():
    """The worst graph known for Graphviz: an unrolled LSTM with shared leaves, as large as may be drawn."""
    cell = torch.nn.LSTMCell(4, 5)
    h = c = torch.zeros(1, 5)
    for _ in range(7):
        h, c = cell(torch.randn(1, 4), (h, c))
    start = time.perf_counter()
    assert draw(h.sum()).svg is not None
    assert time.perf_counter() - start < 20  # it takes a tenth of a second; without the limits it may never end


def test_nothing_is_written_to_stderr(x, capfd):
    draw((x * x).sum(), x=x)
    assert capfd.readouterr().err == ""


def test_drawing_keeps_nothing_alive_and_changes_nothing(x):
    import gc
    import weakref

    y = x * 2
    alive = weakref.ref(y)
    picture = draw(y.exp(), y=y)
    del y
    gc.collect()
    assert alive() is None
    assert picture.svg
    assert x.grad is None


def test_save_writes_the_svg(x, tmp_path):
    picture = draw(x * x)
    picture.save(tmp_path / "graph.svg")
    assert ET.parse(tmp_path / "graph.svg").getroot().get("role") == "img"


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"draw\(\) got no tensor to start from"):
        draw()
    with pytest.raises(TypeError, match=r"draw\(\) got w=int; keyword arguments name tensors"):
        draw(torch.ones(2), w=3)
    with pytest.raises(TypeError, match="argument 1 is of type list"):
        draw([torch.ones(2)])


def test_one_bad_name_does_not_spoil_the_picture(x):
    y = x * 1
    first, _ = y.unbind()
    z = y.sum()
    y.add_(1)
    assert "makes" not in " ".join(texts(draw(z, first=first)))


def test_memory_without_an_address_names_nothing():
    m = torch.randn(4, device="meta", requires_grad=True)
    used, other = torch.randn(4, device="meta"), torch.randn(4, device="meta")
    assert "saved other (4,)" in texts(draw((m * used).sum(), m=m, other=other))
    empty = torch.randn(0, requires_grad=True) * torch.zeros(0)
    assert "saved other (0,)" in texts(draw(empty, other=torch.zeros(0)))


def test_a_view_with_another_dtype_is_not_the_tensor(x):
    constant = torch.randn(2, 3)
    assert "saved other (2, 3), view of bits" in texts(draw(x * constant, bits=constant.view(torch.int32)))


def test_names_that_no_xml_may_hold(x):
    assert texts(draw(x * x, **{"a\x00b\ud800": x}))[-1] == "a\ufffdb\ufffd (2, 3)"
    draw(x * x, **{"a\ud800": x})._repr_mimebundle_()


def test_the_legend_is_as_wide_as_a_narrow_picture_allows(x):
    narrow = draw((x * x).sum())
    assert float(ET.fromstring(narrow.svg).get("width")) < 470
    assert legend(narrow) == ["round: leaf", "square: operation", "thick: start", "green: kept for backward"]


def test_wide_characters_get_room(x):
    narrow, wide = draw(x * x, **{"x" * 60: x}), draw(x * x, **{"\u68af" * 60: x})
    assert float(ET.fromstring(wide.svg).get("width")) > float(ET.fromstring(narrow.svg).get("width"))


def test_values_of_numbers_stand_in_the_boxes():
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    product = x * y
    picture = draw((product * 4).exp(), x=x, y=y, product=product, values=True)
    shown = texts(picture)
    for text in (
        "x = 2",
        "y = 3",
        "forward: product = 6",
        "saved other = y = 3",
        "saved self = x = 2",
        "saved other = 4",
    ):
        assert text in shown
    assert "with the leaves x = 2, y = 3." in picture.alt
    assert picture.alt.endswith(" Values: product = 6.")
    assert "[forward: product = 6; saved other = y = 3; saved self = x = 2]" in picture.text


def test_values_of_tensors_stand_in_rows_and_of_large_ones_as_a_range(x):
    w, large = torch.tensor([0.5, -0.25], requires_grad=True), torch.linspace(-1, 1, 40).reshape(20, 2).requires_grad_()
    picture = draw((large * w).sum() + x.sum(), x=x, w=w, large=large, values=True)
    shown = texts(picture)
    assert shown[shown.index("x (2, 3)") + 1 :][:2] == ["[1 1 1]", "[1 1 1]"]
    assert shown[shown.index("w (2,)") + 1] == "[  0.5 -0.25]"
    assert shown[shown.index("large (20, 2)") + 1] == "-1 to 1"
    assert "x = [[1, 1, 1], [1, 1, 1]]" in picture.alt
    assert "large (20, 2) from -1 to 1" in picture.alt


def test_values_that_are_not_those_saved_are_not_shown():
    x = torch.tensor(2.0, requires_grad=True)
    y = x.exp()
    z = y * 3
    with torch.no_grad():
        y.add_(1)
    shown = texts(draw(y.sin() + z, values=True))
    assert "saved result scalar, written to since" in shown


def test_the_direction_of_the_code(x):
    down, up = draw((x * x).sum(), x=x), draw((x * x).sum(), x=x, direction="code")

    def heights(picture):
        return {element.text: float(element.get("y")) for element in elements(picture)}

    assert heights(down)["SumBackward0"] < heights(down)["MulBackward0"] < heights(down)["x (2, 3)"]
    assert heights(up)["SumBackward0"] > heights(up)["MulBackward0"] > heights(up)["x (2, 3)"]
    assert "marker-end" in down.svg
    assert "marker-start" not in down.svg
    assert "marker-start" in up.svg
    assert "marker-end" not in up.svg
    assert "arrows: from inputs to results" in legend(up)
    assert up.alt == down.alt


def test_values_and_direction_are_no_names(x):
    with pytest.raises(TypeError, match=r"draw\(\) got values=Tensor; values=True shows numbers, and a tensor needs"):
        draw(x * x, values=x)
    with pytest.raises(ValueError, match=r"draw\(\) got direction='up'; it draws in the direction of \"gradients\" or"):
        draw(x * x, direction="up")


def test_a_recorded_pass_is_drawn_at_once():
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(3.0, requires_grad=True)
    product = x * y
    out = (x + product) ** 2
    recording = record_backward(out, x=x, y=y, product=product, out=out)
    picture = draw(recording)
    shown = texts(picture)
    for text in (
        "forward: product = 6",
        "\u00d7 y = 3",
        "48",
        "\u00d7 x = 2",
        "turn 4: .grad = 64",
        "turn 5: .grad = 32",
    ):
        assert text in shown
    assert not any(text.startswith(("saved", "freed")) for text in shown)
    assert "beside an arrow: factor, and what was sent" in legend(picture)
    assert "x receives 64 = 16 + 48" in picture.alt
    assert str(picture) == str(recording)
    turned = draw(recording, direction="code")
    assert "arrows: from inputs to results" in legend(turned)


@pytest.mark.parametrize("more", [{"values": True}, {"x": torch.ones(1)}])
def test_a_recorded_pass_is_drawn_alone(x, more):
    recording = record_backward(x.sum())
    with pytest.raises(TypeError, match="takes one recording alone"):
        draw(recording, **more)
    with pytest.raises(TypeError, match="takes one recording alone"):
        draw(recording, x)
