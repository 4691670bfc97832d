"""Where the boxes of a graph go. Graphviz decides; everything that is drawn is ours.

Boxes have sizes of their own and no text, so a layout depends on no font and is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

# Graphviz takes seconds beyond this, and nobody reads such a picture.
MAX_BOXES = 200
MAX_ARROWS = 400

# They stop Graphviz's search for a better layout early: 8 s become 1 s for an unrolled LSTM of 300 nodes.
_LIMITS = {"nslimit": "2", "nslimit1": "2", "mclimit": "0.5"}
_POINTS_PER_INCH = 72.0


class TooLargeToDraw(ValueError):
    """The graph has more boxes or arrows than a readable picture holds."""


@dataclass(frozen=True)
class Layout:
    """Centres of boxes and of arrows' labels, and Bezier points of arrows, in pixels from the top left corner."""

    width: float
    height: float
    centres: Mapping[str, tuple[float, float]]
    arrows: Sequence[Sequence[tuple[float, float]]]
    labels: Sequence[tuple[float, float] | None]

    def upside_down(self) -> Layout:
        """Return the same layout with its bottom at the top: arrows then point upwards."""

        def flipped(point: tuple[float, float]) -> tuple[float, float]:
            return point[0], round(self.height - point[1], 1)

        return replace(
            self,
            centres={name: flipped(centre) for name, centre in self.centres.items()},
            arrows=[[flipped(point) for point in curve] for curve in self.arrows],
            labels=[None if label is None else flipped(label) for label in self.labels],
        )


def lay_out(
    boxes: Mapping[str, tuple[float, float]],
    arrows: Sequence[tuple[str, str]],
    most_boxes: int = MAX_BOXES,
    most_arrows: int = MAX_ARROWS,
    labels: Sequence[tuple[float, float] | None] = (),
) -> Layout:
    """Place `boxes` (name: width and height in pixels) in ranks, so that `arrows` point downwards.

    `labels` are the sizes of what stands beside each arrow, None where nothing does.

    Raises TooLargeToDraw above `most_boxes` or `most_arrows`, and ImportError without pygraphviz.
    """
    if len(boxes) > most_boxes or len(arrows) > most_arrows:
        raise TooLargeToDraw(
            f"the picture would have {len(boxes)} boxes and {len(arrows)} arrows; "
            f"it is drawn up to {most_boxes} boxes and {most_arrows} arrows"
        )
    import pygraphviz

    graph = pygraphviz.AGraph(directed=True, strict=False)
    graph.graph_attr.update(_LIMITS, ranksep="0.35", nodesep="0.25")
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    for name, (width, height) in boxes.items():
        graph.add_node(name, width=width / _POINTS_PER_INCH, height=height / _POINTS_PER_INCH)
    for number, (start, end) in enumerate(arrows):
        size = labels[number] if labels else None
        graph.add_edge(start, end, key=str(number), label="" if size is None else _room(*size))
    graph.layout(prog="dot")

    _, _, right, top = (float(text) for text in graph.graph_attr["bb"].split(","))

    def point(text: str) -> tuple[float, float]:
        x, y = text.split(",")[-2:]
        return round(float(x), 1), round(top - float(y), 1)

    centres = {name: point(graph.get_node(name).attr["pos"]) for name in boxes}
    curves, beside = [], []
    for number, (start, end) in enumerate(arrows):
        edge = graph.get_edge(start, end, key=str(number)).attr
        # "e,x,y x,y x,y ...": the tip first, then the points of the curve
        tip, *points = edge["pos"].split()
        curves.append([*(point(text) for text in points), point(tip)])
        beside.append(point(edge["lp"]) if edge["lp"] else None)
    return Layout(right, top, centres, curves, beside)


def _room(width: float, height: float) -> str:
    """Return a label that takes up room and has no text, so that no font decides how much."""
    attributes = 'BORDER="0" CELLBORDER="0" CELLPADDING="0" CELLSPACING="0" FIXEDSIZE="TRUE"'
    return f'<<TABLE {attributes} WIDTH="{width:.0f}" HEIGHT="{height:.0f}"><TR><TD></TD></TR></TABLE>>'
