"""`draw`: a recorded graph as a picture, with a text that says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from course_utils.graph.naming import check_names, made_by
from course_utils.graph.own import is_own, own_graph
from course_utils.graph.saved import Saved, scan
from course_utils.graph.trace import Graph, describe, nodes_from, roots_of, shortened
from course_utils.pictures.boxes import CHARACTER, LINE, PAD, Box, Scene, boxes_of, scene
from course_utils.pictures.layout import MAX_ARROWS, MAX_BOXES, Layout, TooLargeToDraw, lay_out

# After Okabe and Ito: colour-blind readers tell them apart. Shapes, words and strokes say the same again.
BLUE, ORANGE, GREEN, INK, GREY = "#0072B2", "#A84300", "#00694D", "#222222", "#5F5F5F"
_MARGIN, _LEGEND_WIDTH = 12.0, 440.0
_SMALL = CHARACTER * 11 / 12
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


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
            bundle["text/html"] = image(self.svg, self.alt)
        return bundle


def draw(*tensors: Any, **names: Any) -> Picture:
    """Draw the graph behind `tensors`, with what its nodes have saved and freed.

    Keyword arguments name tensors: `draw(loss, x=x, w=w)`, or `draw(loss, **dict(model.named_parameters()))`.
    Arrows go the way of gradients, from results to leaves. Nothing of the graph is run. Graphs too large for a
    readable picture come as text. Tensors of an engine of your own (lesson 11) are drawn as well, by `grad_fn`, and
    `name` and `inputs` of its nodes.

    Raises TypeError for anything that is not a tensor, and GraphTooLarge as `trace` does.
    """
    if not tensors:
        raise TypeError("draw() got no tensor to start from: draw(loss), or draw(loss, x=x, w=w) to name some")
    if all(map(is_own, tensors)):
        graph, made = own_graph(tensors, names)
        return _picture(graph, boxes_of(graph, made, Saved(())))
    check_names(names, "draw")
    roots = roots_of(tensors)
    nodes = nodes_from(roots)
    graph = describe(nodes, roots)
    return _picture(graph, boxes_of(graph, made_by(nodes, names), scan(nodes, names=names)))


def _picture(graph: Graph, boxes: Mapping[int, Box]) -> Picture:
    alt, text = _alt(graph, boxes), _text(graph, boxes)
    if not graph.nodes:
        return Picture(None, text, alt)
    try:
        return Picture(svg_of(scene(graph, boxes), alt), text, alt)
    except TooLargeToDraw as error:
        return Picture(None, f"No picture: {error}. Draw a part, for example one layer's output. As text:\n{text}", alt)
    except ImportError as error:
        return Picture(None, f"No picture: {error}. `pip install pygraphviz` gives it. As text:\n{text}", alt)


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


def image(svg: str, alt: str) -> str:
    """Return an HTML image. It survives in notebooks that are not trusted, and screen readers get its alt text."""
    source = quote(svg, safe=" =:;,/()-'")
    return f'<img alt="{escape(_printable(alt))}" src="data:image/svg+xml,{source}">'


def svg_of(drawn: Scene, alt: str, most_boxes: int = MAX_BOXES, most_arrows: int = MAX_ARROWS) -> str:
    """Lay a scene out and draw it. Raises TooLargeToDraw above the limits, and ImportError without pygraphviz."""
    sizes = {name: box.size for name, box in drawn.boxes.items()}
    layout = lay_out(sizes, drawn.arrows, most_boxes, most_arrows)
    parts = [_arrow(*pair) for pair in zip(layout.arrows, drawn.edges, strict=True)]
    for name, box in drawn.boxes.items():
        node = drawn.nodes[name]
        parts.append(_drawn(box, node, node in drawn.copied, layout.centres[name]))
    return _page(layout, parts, _legend(drawn), alt)


def _arrow(curve: Sequence[tuple[float, float]], edges: Collection[tuple[int, int]]) -> str:
    (x, y), *bends, tip = curve
    path = f"M{x},{y} C{' '.join(f'{x},{y}' for x, y in bends)} L{tip[0]},{tip[1]}"
    keys = " ".join(f"{node}-{position}" for node, position in edges)
    stroke = f'fill="none" stroke="{INK}" stroke-width="1.2" marker-end="url(#tip)"'
    return f'<path class="edge" data-edges="{keys}" d="{path}" {stroke}/>'


def _drawn(box: Box, node: int, copied: bool, centre: tuple[float, float]) -> str:
    width, height = box.size
    left, top = centre[0] - width / 2, centre[1] - height / 2
    stroke, fill = (BLUE, "#E3F0F9") if box.leaf else (INK, "#FFFFFF" if not box.start else "#F3F3F3")
    radius = height / 2 if box.leaf else 3
    dash = ' stroke-dasharray="5 3"' if copied else ' stroke-opacity="0"' if box.port else ""
    rect = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{2.4 if box.start else 1.2}"{dash}/>'
    )
    rows = []
    for number, line in enumerate(box.lines):
        baseline = top + PAD / 2 + (number + 0.75) * LINE
        where = f'x="{centre[0]:.1f}" y="{baseline:.1f}" text-anchor="middle"'
        key = f' class="line {line.style}" data-key="{line.key}"' if line.key else ""
        rows.append(f"<text {where}{key}{_STYLES[line.style]}>{escape(_printable(line.text))}</text>")
    return f'<g class="node" data-node="{node}">{rect}{"".join(rows)}</g>'


def _printable(text: str) -> str:
    """Replace what no XML may hold, such as control characters in a name."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


_STYLES = {
    "title": f' fill="{INK}" font-weight="bold"',
    "plain": f' fill="{INK}"',
    "held": f' fill="{GREEN}"',
    "attribute": f' fill="{GREEN}"',
    "packed": f' fill="{GREEN}" font-style="italic"',
    "modified": f' fill="{ORANGE}" font-weight="bold"',
    "freed": f' fill="{GREY}" text-decoration="line-through"',
    "spent": f' fill="{GREY}" text-decoration="line-through"',  # freed in the pass that the picture is about
    "gradient": f' fill="{BLUE}" font-weight="bold"',
}


def _page(layout: Layout, parts: list[str], words: Sequence[str], alt: str) -> str:
    legend = _wrapped(words, max(layout.width, _LEGEND_WIDTH))
    width = max(layout.width, *(len(line) * _SMALL for line in legend)) + 2 * _MARGIN
    below = layout.height + _MARGIN + LINE
    height = below + len(legend) * LINE
    rows = "".join(
        f'<text class="legend" x="{width / 2:.1f}" y="{below + number * LINE:.1f}" text-anchor="middle" font-size="11" '
        f'fill="{INK}">{line}</text>'
        for number, line in enumerate(legend)
    )
    shift = (width - layout.width) / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_FONT}" font-size="12">'
        f"<title>{escape(_printable(alt))}</title>"
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8.4" markerHeight="8.4" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#FFFFFF"/>'
        f'<g transform="translate({shift:.1f},{_MARGIN})">{"".join(parts)}</g>{rows}</svg>'
    )


def _wrapped(words: Sequence[str], width: float) -> list[str]:
    """Put the legend's words into lines of at most `width` px, where a word allows it."""
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} | {word}"
        if len(longer) * _SMALL <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _legend(drawn: Scene) -> list[str]:
    styles = {line.style for box in drawn.boxes.values() for line in box.lines}
    words = ["round: leaf", "square: operation", "thick: start"]
    if styles & {"held", "packed", "attribute"}:
        words.append("green: kept for backward")
    if "modified" in styles:
        words.append("orange: written to since")
    if styles & {"freed", "spent"}:
        words.append("struck through: freed")
    if "gradient" in styles:
        words.append("blue: gradient received, by step")
    if drawn.copied:
        words.append("dashed: one leaf, drawn at each use")
    return words
