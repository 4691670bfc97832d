"""`plot`: what stands in the picture, and that it is the same on every run."""

import io

import pytest
import torch
from matplotlib import pyplot
from matplotlib.collections import PolyCollection
from torch import nn

from course_utils import memory, plot
from course_utils.pictures.plots import MAX_OWNERS


def timeline(layers: int, width: int = 30):
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(layers)))
    return memory(lambda: model(torch.ones(50, width)).sum().backward(), model)


def png(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def areas(axes):
    return [area for area in axes.collections if isinstance(area, PolyCollection)]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_what_the_picture_says():
    one = timeline(2)
    figure = plot(one, titles=["mine"])
    (axes,) = figure.axes
    assert axes.get_xlabel() == "operations that have run"
    assert axes.get_ylabel() == "alive (kB)"
    assert axes.get_title() == "mine"
    assert [text.get_text() for text in axes.texts] == [f"peak {one.peak.total / 1000:,.1f} kB"]
    assert legend(figure) == ["a backward pass starts", "gradients", "outside", "1.1", "1.0", "0.1", "0.0"]
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert set(line.get_xdata()) == set(one.passes)
    highest = max(area.get_paths()[0].vertices[:, 1].max() for area in areas(axes))
    assert highest == pytest.approx(one.peak.total / 1000)


def test_hatches_differ_as_colours_do():
    (axes,) = plot(timeline(20)).axes
    looks = [(tuple(area.get_facecolor()[0]), area.get_hatch()) for area in areas(axes)]
    assert len(looks) == MAX_OWNERS + 1
    assert len({hatch for _, hatch in looks}) == len(looks)


def test_parts_are_merged_until_they_are_few():
    assert legend(plot(timeline(6)))[1:] == ["gradients", "outside", *"543210"]
    assert legend(plot(timeline(2), depth=1))[1:] == ["gradients", "outside", "1", "0"]
    assert "others" in legend(plot(timeline(9)))
    assert "others" in legend(plot(timeline(6), depth=2))


def test_others_are_what_is_left():
    many = timeline(9)
    (axes,) = plot(many).axes
    highest = max(area.get_paths()[0].vertices[:, 1].max() for area in areas(axes))
    assert highest == pytest.approx(many.peak.total / 1000)


def test_side_by_side_with_one_scale():
    small, large = timeline(2), timeline(4)
    figure = plot(small, large, titles=("small", "large"))
    assert [axes.get_title() for axes in figure.axes] == ["small", "large"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert figure.axes[0].get_ylim()[1] > large.peak.total / 1000
    faces = [[tuple(area.get_facecolor()[0]) for area in areas(axes)] for axes in figure.axes]
    assert faces[0] == faces[1]


def test_the_same_picture_on_every_run_whatever_the_users_style():
    one = timeline(2)
    first = png(plot(one))
    with pyplot.rc_context({"font.size": 20, "axes.grid": True}):
        again = plot(one)
    assert png(again) == first


def test_the_figure_is_closed():
    before = pyplot.get_fignums()
    plot(timeline(1))
    assert pyplot.get_fignums() == before


def test_a_run_that_made_nothing_and_one_without_backward():
    plot(memory(lambda: None)).draw_without_rendering()
    figure = plot(memory(lambda: torch.ones(3)))
    assert figure.axes[0].get_ylabel() == "alive (bytes)"
    assert legend(figure) == ["outside"]


@pytest.mark.parametrize(
    ("arguments", "titles", "error", "words"),
    [
        ((), (), TypeError, r"plot\(\) got no timeline: plot\(memory\(step, model\)\)"),
        ((print,), (), TypeError, r"it draws what memory\(step, model\) returns"),
        ((memory(lambda: 0),), ("a", "b"), ValueError, "for 1 timelines; it needs one for each"),
        ((memory(lambda: 0),), "a", ValueError, "it needs one for each"),
    ],
)
def test_wrong_arguments(arguments, titles, error, words):
    with pytest.raises(error, match=words):
        plot(*arguments, titles=titles)
