"""`draw`: a recorded graph as a picture, with a text that says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width
from urllib.parse import quote

import torch

from course_utils.graph.naming import check_names, made_by
from course_utils.graph.saved import Saved, SavedTensor, scan
from course_utils.graph.trace import Graph, Node, describe, roots_of, shortened, walk
from course_utils.pictures.layout import Layout, TooLargeToDraw, lay_out

# After Okabe and Ito: colour-blind readers tell them apart. Shapes, words and strokes say the same again.
BLUE, ORANGE, GREEN, INK, GREY = "#0072B2", "#A84300", "#00694D", "#222222", "#5F5F5F"
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_CHARACTER, _LINE, _PAD = 7.25, 17.0, 8.0  # of a 12 px monospaced font, in px

# A leaf with more uses than this gets one box for each, because long arrows take Graphviz minutes to place.
_USES = 4

_STATE_TEXT = {
    "held": "saved {}",
    "modified": "saved {}, written to since",
    "packed": "saved {}, packed by a hook",
    "freed": "freed {}",
    "attribute": "keeps {}",
}


@dataclass(frozen=True)
class Line:
    """One line of text in a box."""

    text: str
    style: str = "plain"


def _columns(text: str) -> int:
    """Return how many characters wide a text is: Chinese and the like take two each."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


@dataclass(frozen=True)
class Box:
    """One box of the picture: what it says, and whether it stands for a leaf."""

    lines: tuple[Line, ...]
    leaf: bool
    output: bool

    @property
    def size(self) -> tuple[float, float]:
        return max(_columns(line.text) for line in self.lines) * _CHARACTER + 2 * _PAD, len(self.lines) * _LINE + _PAD


@dataclass(frozen=True)
class Picture:
    """A drawn graph. Shows itself in notebooks; `svg` is None where only the text can be given."""

    svg: str | None
    text: str
    alt: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def save(self, path: str | Path) -> None:
        """Write the picture as an SVG file. Raises ValueError where there is only text."""
        if self.svg is None:
            raise ValueError(f"there is no picture to save: {self.text.splitlines()[0]}")
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": self.text}
        if self.svg is not None:
            # As an image it survives in notebooks that are not trusted, and screen readers get its alt text.
            source = quote(self.svg, safe=" =:;,/()-'")
            bundle["text/html"] = f'<img alt="{escape(_printable(self.alt))}" src="data:image/svg+xml,{source}">'
        return bundle


def draw(*tensors: torch.Tensor, **names: torch.Tensor) -> Picture:
    """Draw the graph behind `tensors`, with what its nodes have saved and freed.

    Keyword arguments name tensors: `draw(loss, x=x, w=w)`, or `draw(loss, **dict(model.named_parameters()))`.
    Arrows go the way of gradients, from results to leaves. Nothing of the graph is run. Graphs too large for a
    readable picture come as text.

    Raises TypeError for anything that is not a tensor, and GraphTooLarge as `trace` does.
    """
    if not tensors:
        raise TypeError("draw() got no tensor to start from: draw(loss), or draw(loss, x=x, w=w) to name some")
    check_names(names, "draw")
    roots = roots_of(tensors)
    nodes = walk(root[0] for root in roots if root is not None)
    graph = describe(nodes, roots)
    boxes = boxes_of(graph, made_by(nodes, names), scan(nodes, names=names))
    alt, text = _alt(graph, boxes), _text(graph, boxes)
    if not graph.nodes:
        return Picture(None, text, alt)
    try:
        return Picture(_svg(graph, boxes, alt), text, alt)
    except TooLargeToDraw as error:
        return Picture(None, f"No picture: {error}. Draw a part, for example one layer's output. As text:\n{text}", alt)
    except ImportError as error:
        return Picture(None, f"No picture: {error}. `pip install pygraphviz` gives it. As text:\n{text}", alt)


def boxes_of(graph: Graph, made: Mapping[int, tuple[str, ...]], saved: Saved) -> dict[int, Box]:
    """Return a box for each node: its name, the named tensors that it made, and what it saved."""
    kept: dict[int, list[Line]] = {}
    for entry in saved:
        kept.setdefault(entry.node, []).append(_saved_line(entry))
    outputs = {edge.node for edge in graph.outputs if edge is not None}
    boxes = {}
    for node in graph.nodes:
        own = made.get(node.index, ())
        lines = _leaf_lines(node, own) if node.is_leaf else _operation_lines(node, own)
        boxes[node.index] = Box((*lines, *kept.get(node.index, ())), node.is_leaf, node.index in outputs)
    return boxes


def _leaf_lines(node: Node, made: tuple[str, ...]) -> tuple[Line, ...]:
    name, *others = made or ("leaf",)
    return Line(f"{name} {node.shape or 'scalar'}", "title"), *(Line(other) for other in others)


def _operation_lines(node: Node, made: tuple[str, ...]) -> tuple[Line, ...]:
    title = Line(node.name, "title")
    return (title, Line("makes " + ", ".join(made))) if made else (title,)


def _saved_line(entry: SavedTensor) -> Line:
    """Say what was saved: which of the named tensors, or whose memory it views; else its shape."""
    what = ""
    if entry.shape is not None:
        what = f" {entry.shape or 'scalar'}"
        if entry.label:
            what = f"{what}, {entry.label}" if entry.label.startswith("view of") else f" = {entry.label}"
    return Line(_STATE_TEXT[entry.state].format(entry.name + what), entry.state)


def _text(graph: Graph, boxes: Mapping[int, Box]) -> str:
    """Return the lines of `str(graph)`, each followed by what else the box says."""
    rows = []
    for row, node in zip(graph.rows(), graph.nodes, strict=True):
        extra = [line.text for line in boxes[node.index].lines if node.is_leaf or line.style != "title"]
        rows.append(f"{row}  [{'; '.join(extra)}]" if extra else row)
    return shortened(rows, "nodes") or str(graph)


def _alt(graph: Graph, boxes: Mapping[int, Box]) -> str:
    if not graph.nodes:
        return "No graph: nothing was recorded for these tensors."
    leaves = [boxes[node.index].lines[0].text for node in graph.leaves]
    head = f"Backward graph of {len(graph.nodes)} nodes and {len(graph.edges)} edges"
    freed = sum(line.style == "freed" for box in boxes.values() for line in box.lines)
    tail = f" Saved tensors freed at {freed} places." if freed else ""
    if len(graph.nodes) > 12:
        common = Counter(node.name for node in graph.nodes).most_common(4)
        counts = ", ".join(f"{count} {name}" for name, count in common)
        return f"{head}, with {len(leaves)} leaves. Most frequent: {counts}.{tail}"
    steps = []
    for node in graph.nodes:
        to = [boxes[e.node].lines[0].text for e in node.inputs if e is not None]
        if to:
            steps.append(f"{node.name} passes gradients to {' and '.join(to)}")
    return f"{head}, with the leaves {', '.join(leaves)}. {'. '.join(steps)}.{tail}"


def _svg(graph: Graph, boxes: Mapping[int, Box], alt: str) -> str:
    uses = Counter(edge.node for _, edge in graph.edges)
    shared = {node.index for node in graph.leaves if uses[node.index] > _USES}
    several = {edge.node for _, edge in graph.edges if edge.output}
    contents = {f"n{index}": box for index, box in boxes.items() if index not in shared}
    arrows: list[tuple[str, str]] = []
    for start, edge in graph.edges:
        end = f"n{edge.node}"
        if edge.node in shared:
            end = f"n{edge.node}use{len(arrows)}"
            contents[end] = boxes[edge.node]
        if edge.node in several:  # the output stands above its node, as a small box of its own
            port = f"{end}output{edge.output}"
            if port not in contents:
                contents[port] = Box((Line(f"output {edge.output}"),), False, False)
                arrows.append((port, end))
            end = port
        arrows.append((f"n{start}", end))
    layout = lay_out({name: box.size for name, box in contents.items()}, arrows)
    parts = [_arrow(curve) for curve in layout.arrows]
    parts += [_drawn(name, box, layout.centres[name]) for name, box in contents.items()]
    return _page(layout, parts, boxes, bool(shared), alt)


def _arrow(curve: Sequence[tuple[float, float]]) -> str:
    (x, y), *bends, tip = curve
    path = f"M{x},{y} C{' '.join(f'{x},{y}' for x, y in bends)} L{tip[0]},{tip[1]}"
    return f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.2" marker-end="url(#tip)"/>'


def _drawn(name: str, box: Box, centre: tuple[float, float]) -> str:
    width, height = box.size
    left, top = centre[0] - width / 2, centre[1] - height / 2
    stroke, fill = (BLUE, "#E3F0F9") if box.leaf else (INK, "#FFFFFF" if not box.output else "#F3F3F3")
    radius = height / 2 if box.leaf else 3
    dash = ' stroke-dasharray="5 3"' if "use" in name else ' stroke-opacity="0"' if "output" in name else ""
    rect = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{2.4 if box.output else 1.2}"{dash}/>'
    )
    rows = []
    for number, line in enumerate(box.lines):
        baseline = top + _PAD / 2 + (number + 0.75) * _LINE
        where = f'x="{centre[0]:.1f}" y="{baseline:.1f}" text-anchor="middle"'
        rows.append(f"<text {where}{_style(line.style)}>{escape(_printable(line.text))}</text>")
    return f'<g id="{name}">{rect}{"".join(rows)}</g>'


def _printable(text: str) -> str:
    """Replace what no XML may hold, such as control characters in a name."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _style(style: str) -> str:
    return {
        "title": f' fill="{INK}" font-weight="bold"',
        "plain": f' fill="{INK}"',
        "held": f' fill="{GREEN}"',
        "attribute": f' fill="{GREEN}"',
        "packed": f' fill="{GREEN}" font-style="italic"',
        "modified": f' fill="{ORANGE}" font-weight="bold"',
        "freed": f' fill="{GREY}" text-decoration="line-through"',
    }[style]


def _page(layout: Layout, parts: list[str], boxes: Mapping[int, Box], shared: bool, alt: str) -> str:
    legend = _legend(boxes, shared)
    margin = 12.0
    width = max(layout.width, len(legend) * _CHARACTER * 10 / 12) + 2 * margin
    height = layout.height + 2 * margin + _LINE + 4
    shift = (width - layout.width) / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_FONT}" font-size="12">'
        f"<title>{escape(_printable(alt))}</title>"
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#FFFFFF"/>'
        f'<g transform="translate({shift:.1f},{margin})">{"".join(parts)}</g>'
        f'<text x="{width / 2:.1f}" y="{height - margin:.1f}" text-anchor="middle" font-size="10" fill="{INK}">'
        f"{legend}</text></svg>"
    )


def _legend(boxes: Mapping[int, Box], shared: bool) -> str:
    styles = {line.style for box in boxes.values() for line in box.lines}
    words = ["round: leaf", "square: operation", "thick: start"]
    if styles & {"held", "packed", "attribute"}:
        words.append("green: kept for backward")
    if "modified" in styles:
        words.append("orange: written to since")
    if "freed" in styles:
        words.append("struck through: freed")
    if shared:
        words.append("dashed: one leaf, drawn at each use")
    return " | ".join(words)
