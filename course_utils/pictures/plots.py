"""`plot`: the memory of one run over time, or of several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from course_utils.graph.owners import GRADIENTS, ITSELF, OUTSIDE
from course_utils.graph.timeline import Timeline, amount, unit_for
from course_utils.pictures.svg import BLUE, GREEN, GREY, INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_OWNERS = 8
OTHERS = "others"


class _Look(NamedTuple):
    """Colour of an area, colour of its hatch, and the hatch. Hatches all differ, so that nobody needs the colours."""

    face: str
    ink: str
    hatch: str


_PALE_BLUE, _PALE_GREEN, _PALE_ORANGE, _PALE_GREY, _WHITE = "#C5DFF0", "#BFE0D5", "#F6D3BD", "#E4E4E4", "#FFFFFF"
_LOOKS = (
    _Look(_PALE_BLUE, BLUE, "///"),
    _Look(_PALE_GREEN, GREEN, "oo"),
    _Look(BLUE, _WHITE, ""),
    _Look(_WHITE, GREEN, "|||"),
    _Look(GREY, _WHITE, "//"),
    _Look(_WHITE, BLUE, "---"),
    _Look(GREEN, _WHITE, "\\\\"),
    _Look(_PALE_BLUE, INK, "**"),
)
# These look the same in every plot.
_FIXED = {
    OTHERS: _Look(_WHITE, GREY, "..."),
    OUTSIDE: _Look(_PALE_GREY, GREY, "xxx"),
    GRADIENTS: _Look(_PALE_ORANGE, ORANGE, "++"),
}

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "hatch.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
}
_WIDTH, _HEIGHT, _LEGEND_WIDTH = 4.2, 3.8, 2.4  # inches
_DPI = 100

# Lines for so many backward passes; more would hide what they cross.
_LINES = 10


def plot(*timelines: Timeline, titles: Sequence[str] = (), depth: int | None = None) -> Figure:
    """Draw what `memory` returned: the bytes alive after each operation, stacked by owner.

    Several timelines stand side by side with one scale, as in `plot(plain, frugal, titles=("plain", "frugal"))`.
    Parts of a model are merged whose names agree in the first `depth` words; without `depth` as many words count as
    give at most MAX_OWNERS owners. Of more owners the smallest become "others". A dashed line stands where each
    backward pass starts, and a dot with its number at the peak. `str(timeline)` says the same in numbers.

    Raises TypeError for anything that is not a Timeline, and ValueError where the titles are not one for each.
    """
    _check(timelines, titles)
    merged = [timeline.merged(depth or _depth(timelines)) for timeline in timelines]
    owners = _drawn(merged)
    import matplotlib.style
    from matplotlib import pyplot

    with matplotlib.style.context(_STYLE, after_reset=True):
        size = _WIDTH * len(merged) + _LEGEND_WIDTH, _HEIGHT
        figure, axes = pyplot.subplots(
            1, len(merged), sharey=True, squeeze=False, figsize=size, dpi=_DPI, layout="constrained"
        )
        scale, unit = unit_for(max(timeline.peak.total for timeline in merged))
        looks = _looks(owners)
        for place, timeline in enumerate(merged):
            _draw(axes[0, place], timeline, looks, scale, unit)
            axes[0, place].set_title(titles[place] if titles else "")
        axes[0, 0].set_ylabel(f"alive ({unit})")
        highest = max(timeline.peak.total for timeline in merged) / scale
        axes[0, 0].set_ylim(0, highest * 1.15 or 1)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside right upper", frameon=False, handleheight=1.4)
        pyplot.close(figure)  # a notebook shows a figure that is open once more
    return figure


def _check(timelines: Sequence[Any], titles: Sequence[str]) -> None:
    if not timelines:
        raise TypeError("plot() got no timeline: plot(memory(step, model))")
    for timeline in timelines:
        if not isinstance(timeline, Timeline):
            raise TypeError(f"plot() got {type(timeline).__name__}; it draws what memory(step, model) returns")
    if isinstance(titles, str) or (titles and len(titles) != len(timelines)):
        raise ValueError(f"plot() got titles={titles!r} for {len(timelines)} timelines; it needs one for each")


def _depth(timelines: Sequence[Timeline]) -> int:
    """Return how many words of the names may count, so that there are at most MAX_OWNERS owners."""
    longest = max((name.count(".") + 1 for timeline in timelines for name in timeline.owners), default=1)
    for depth in range(longest, 1, -1):
        if len({name for timeline in timelines for name in timeline.merged(depth).owners}) <= MAX_OWNERS:
            return depth
    return 1


def _drawn(timelines: Sequence[Timeline]) -> list[str]:
    """Return the owners to draw, from the bottom up; of too many those with the largest areas, and OTHERS."""
    areas: dict[str, int] = {}
    for timeline in timelines:
        for place, name in enumerate(timeline.owners):
            areas[name] = areas.get(name, 0) + sum(sample.bytes[place] for sample in timeline.samples)
    drawn = list(areas)
    if len(drawn) > MAX_OWNERS:
        drawn = [*sorted(drawn, key=lambda name: -areas[name])[:MAX_OWNERS], OTHERS]
    places = {name: place for place, name in enumerate([*areas, ITSELF, OTHERS, OUTSIDE, GRADIENTS])}
    return sorted(drawn, key=places.__getitem__)


def _looks(owners: Sequence[str]) -> dict[str, _Look]:
    free = iter(_LOOKS)
    return {name: _FIXED[name] if name in _FIXED else next(free) for name in owners}


def _draw(axes: Axes, timeline: Timeline, looks: Mapping[str, _Look], scale: int, unit: str) -> None:
    """Draw one timeline: its areas, its lines and its peak."""
    end = timeline.operations + max(1.0, 0.02 * timeline.operations)  # so that what is left can be seen
    operations = [*(sample.operation for sample in timeline.samples), end]
    bottom = [0.0] * len(operations)
    for name, sizes in _heights(timeline, list(looks)).items():
        top = [below + size / scale for below, size in zip(bottom, [*sizes, sizes[-1]], strict=True)]
        look = looks[name]
        axes.fill_between(
            operations,
            bottom,
            top,
            step="post",
            label=name,
            facecolor=look.face,
            edgecolor=look.ink,
            hatch=look.hatch,
            linewidth=0,
        )
        axes.step(operations, top, where="post", color=INK, linewidth=0.5)
        bottom = top
    for number, operation in enumerate(timeline.passes[:_LINES]):
        label = "a backward pass starts" if number == 0 else None
        axes.axvline(operation, color=INK, linestyle="--", linewidth=1.2, label=label)
    peak = timeline.peak.total / scale
    late = timeline.peak.operation > timeline.operations / 2
    axes.plot(timeline.peak.operation, peak, "o", color=INK, markersize=6, clip_on=False)
    axes.annotate(
        f"peak {amount(timeline.peak.total, scale)} {unit}",
        (timeline.peak.operation, peak),
        xytext=(-8 if late else 8, 6),
        textcoords="offset points",
        ha="right" if late else "left",
        bbox={"facecolor": _WHITE, "edgecolor": "none", "pad": 1.5},
    )
    axes.set_xlim(0, end)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("operations that have run")


def _heights(timeline: Timeline, names: Sequence[str]) -> dict[str, list[int]]:
    """Return for each drawn owner its bytes at each sample; OTHERS gets what is left over."""
    heights = {name: [0] * len(timeline.samples) for name in names}
    for place, name in enumerate(timeline.owners):
        row = heights[name if name in heights else OTHERS]
        for at, sample in enumerate(timeline.samples):
            row[at] += sample.bytes[place]
    return heights
