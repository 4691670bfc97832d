"""`draw`: a recorded graph as a picture, with a text that says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from course_utils.graph.naming import check_names, made_by, named_at
from course_utils.graph.own import is_own, own_graph, own_values
from course_utils.graph.recording import Recording
from course_utils.graph.saved import Saved, scan
from course_utils.graph.trace import Graph, describe, nodes_from, roots_of, shortened
from course_utils.graph.values import values_of
from course_utils.pictures.boxes import Box, Scene, boxes_of, numbers_told, scene
from course_utils.pictures.colours import BLUE as BLUE
from course_utils.pictures.colours import GREEN as GREEN
from course_utils.pictures.colours import GREY as GREY
from course_utils.pictures.colours import INK as INK
from course_utils.pictures.colours import ORANGE as ORANGE
from course_utils.pictures.colours import followed
from course_utils.pictures.cuts import Cut, cuts_of
from course_utils.pictures.drawing import printable, svg_of, themed
from course_utils.pictures.frames import at_once
from course_utils.pictures.layout import TooLargeToDraw

Direction: TypeAlias = Literal["gradients", "code"]


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


def draw(
    *tensors: Any,
    values: bool = False,
    direction: Direction = "gradients",
    cuts: Mapping[str, str | Sequence[str]] | None = None,
    **names: Any,
) -> Picture:
    """Draw the graph behind `tensors`, with what its nodes have saved and freed.

    Keyword arguments name tensors: `draw(loss, x=x, w=w)`, or `draw(loss, **dict(model.named_parameters()))`.
    With `values=True` boxes show numbers, as far as they are known: of leaves, of named tensors, of saved ones. Numbers
    have four digits; small tensors are shown whole, large ones by shape and range.

    Arrows go the way of gradients, from results to leaves. With `direction="code"` the picture has the order of the
    code: inputs at the top, and arrows from inputs to results. Nothing of the graph is run. Graphs too large for a
    readable picture come as text.

    A cut leaves nothing in a graph, so it has to be told: `draw(z, y=y, h=h, z=z, cuts={"h": "z"})` says that h went
    into z without a link, and draws that. What the graph can tell is checked: that the operation behind z has such an
    input, that h needs no gradient, and whether h has the memory of a named tensor, as after `h = y.detach()`.
    `cuts={"y": "h", "h": "z"}` tells as well that h was made from y, where PyTorch could not see it: the cross then
    stands there.

    `draw(recording)` draws a pass that `record_backward` has watched, all of it at once: what each node received, and
    beside each arrow by what the node multiplied and what it sent. Names and values are those of the recording; only
    the tensors that `cuts` speaks of are given again, as in `draw(recording, h=h, z=z, cuts={"h": "z"})`.

    Tensors of an engine of your own (lesson 11) are drawn as well, by `grad_fn`, and
    `name` and `inputs` of its nodes.

    Raises TypeError for anything that is neither a tensor nor one Recording, ValueError for another direction and for a
    cut that is none, and GraphTooLarge as `trace` does.
    """
    if not tensors:
        raise TypeError("draw() got no tensor to start from: draw(loss), or draw(loss, x=x, w=w) to name some")
    if not isinstance(values, bool):
        raise TypeError(
            f"draw() got values={type(values).__name__}; values=True shows numbers, and a tensor needs another name"
        )
    check_direction(direction, "draw")
    as_code = direction == "code"
    recording = tensors[0] if isinstance(tensors[0], Recording) else None
    if recording is not None and (len(tensors) > 1 or values or (names and not cuts)):
        raise TypeError("draw(recording) takes one recording alone: names are given to record_backward(loss, x=x)")
    own = all(map(is_own, tensors)) if recording is None else recording.own
    if own and cuts:
        raise ValueError("draw() shows cuts in graphs of PyTorch's tensors only")
    if recording is not None:
        return _watched(recording, cuts or {}, names, as_code)
    if own:
        graph, made = own_graph(tensors, names)
        known = own_values(names, made) if values else None
        return _picture(graph, boxes_of(graph, made, Saved(()), known), as_code)
    check_names(names, "draw")
    roots = roots_of(tensors)
    nodes = nodes_from(roots)
    graph = describe(nodes, roots)
    named = named_at(nodes, names)
    saved = scan(nodes, names=names, values=values)
    known = values_of(nodes, named) if values else None
    found = cuts_of(cuts or {}, names, graph, named, values)
    return _picture(graph, boxes_of(graph, made_by(named), saved, known), as_code, found)


def check_direction(direction: object, function: str) -> None:
    """Raise a ValueError that names the directions, where a picture is asked for in another one."""
    if direction not in ("gradients", "code"):
        raise ValueError(
            f'{function}() got direction={direction!r}; it draws in the direction of "gradients" or "code"'
        )


def _watched(
    recording: Recording, cuts: Mapping[str, str | Sequence[str]], names: Mapping[str, Any], as_code: bool
) -> Picture:
    """Return a recorded pass. It holds names and no tensors: of these `names` has the ones that cuts speak of."""
    check_names(names, "draw")
    given = {index: {name: names[name] for name in own if name in names} for index, own in recording.made.items()}
    found = cuts_of(cuts, names, recording.graph, given, values=True)
    drawn, alt = at_once(recording, _apart(found))
    return _drawn(drawn, *_told(alt, str(recording), found), as_code)


def _apart(cuts: Sequence[Cut]) -> list[tuple[Box, int, int | None]]:
    return [(cut.box, cut.into, cut.beside) for cut in cuts]


def _told(alt: str, text: str, cuts: Sequence[Cut]) -> tuple[str, str]:
    """Return an alternative text and a text, each with the sentences of the cuts."""
    sentences = [cut.sentence for cut in cuts]
    return " ".join([alt, *sentences]), "\n".join([text, *sentences])


def _picture(graph: Graph, boxes: Mapping[int, Box], as_code: bool, cuts: Sequence[Cut] = ()) -> Picture:
    alt, text = _told(_alt(graph, boxes), _text(graph, boxes), cuts)
    if not graph.nodes:
        return Picture(None, text, alt)
    return _drawn(scene(graph, boxes, apart=_apart(cuts)), alt, text, as_code)


def _drawn(drawn: Scene, alt: str, text: str, as_code: bool) -> Picture:
    try:
        return Picture(themed(svg_of(drawn, alt, as_code=as_code)), text, alt)
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
    leaves = [boxes[node.index].called for node in graph.leaves]
    head = f"Backward graph of {len(graph.nodes)} nodes and {len(graph.edges)} edges"
    freed = sum(line.style == "freed" for box in boxes.values() for line in box.lines)
    tail = f" Saved tensors freed at {freed} places." if freed else ""
    tail += numbers_told(box for box in boxes.values() if box.told != (box.called,))  # the leaves are told already
    if len(graph.nodes) > 12:
        common = Counter(node.name for node in graph.nodes).most_common(4)
        counts = ", ".join(f"{count} {name}" for name, count in common)
        return f"{head}, with {len(leaves)} leaves. Most frequent: {counts}.{tail}"
    steps = []
    for node in graph.nodes:
        to = [boxes[e.node].called for e in node.inputs if e is not None]
        if to:
            steps.append(f"{node.name} passes gradients to {' and '.join(to)}")
    return f"{head}, with the leaves {', '.join(leaves)}. {'. '.join(steps)}.{tail}"


def image(svg: str, alt: str) -> str:
    """Return an HTML image. It survives in notebooks that are not trusted, and screen readers get its alt text."""
    source = quote(svg, safe=" =:;,/()-'")
    return (
        f'<img alt="{escape(printable(alt))}" class="course-picture" src="data:image/svg+xml,{source}">'
        f"<style>{followed('.course-picture')}</style>"
    )
