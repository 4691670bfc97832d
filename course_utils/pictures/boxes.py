"""What a picture of a graph holds: boxes with lines of text, and arrows between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from course_utils.graph.saved import Saved, SavedTensor
from course_utils.graph.trace import Graph, Node
from course_utils.graph.values import Value, extent, in_line, in_rows, whole

CHARACTER, LINE, PAD = 7.25, 17.0, 8.0  # of a 12 px monospaced font, in px

# So many values are named in an alt text.
_TOLD = 12

# A leaf with more uses than this gets one box for each, because long arrows take Graphviz minutes to place.
_USES = 4

# Before the named result of an operation. A node is called by its backward, and this is what its forward pass made.
_MADE = "forward:"

_STATE_TEXT = {
    "held": "saved {}",
    "modified": "saved {}, written to since",
    "packed": "saved {}, packed by a hook",
    "freed": "freed {}",
    "attribute": "keeps {}",
}


@dataclass(frozen=True)
class Line:
    """One line of text in a box. `key` marks it for whoever wants to find it in the picture."""

    text: str
    style: str = "plain"
    key: str = ""


@dataclass(frozen=True)
class Box:
    """One box: what it says, and whether it stands for a leaf, for a start, for one of several outputs, or for a tensor
    apart from the graph; and of the last, whether it was made from another where PyTorch could not see it.

    `called` is the title as an alt text says it; `told` are the values that the box shows, as in "y = 6".
    """

    lines: tuple[Line, ...]
    leaf: bool = False
    start: bool = False
    port: bool = False
    apart: bool = False
    unseen: bool = False
    called: str = ""
    told: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[float, float]:
        return size_of(self.lines)


@dataclass(frozen=True)
class Scene:
    """Boxes by name, and arrows between them.

    `nodes` has the node that each box belongs to. `edges` has for each arrow the edges that it stands for: the
    number of the node that an edge starts from, and of its input; none where an arrow shows a cut. `labels` has
    the lines that stand beside each arrow. `copied` says that leaves are drawn several times.
    """

    boxes: Mapping[str, Box]
    nodes: Mapping[str, int]
    arrows: tuple[tuple[str, str], ...]
    edges: tuple[tuple[tuple[int, int], ...], ...]
    labels: tuple[tuple[Line, ...], ...]
    copied: frozenset[int]


def boxes_of(
    graph: Graph, made: Mapping[int, tuple[str, ...]], saved: Saved, values: Mapping[int, Sequence[Value]] | None = None
) -> dict[int, Box]:
    """Return a box for each node: its name, the named tensors that it made, and what it saved.

    With `values` a box says what those hold: its leaf, or its named results, in the order of the names; and so do
    saved tensors whose values were read.
    """
    kept: dict[int, list[Line]] = {}
    for position, entry in enumerate(saved):
        kept.setdefault(entry.node, []).append(_saved_line(entry, saved_key(position)))
    starts = {edge.node for edge in graph.outputs if edge is not None}
    boxes = {}
    for node in graph.nodes:
        own = made.get(node.index, ())
        known = () if values is None else values.get(node.index, ())
        lines = _leaf_lines(node, own, known) if node.is_leaf else _operation_lines(node, own, known)
        called = lines[0].text
        told = tuple(f"{name} {whole(value)}" for name, value in zip(own, known, strict=False))
        lines = (*lines, *kept.get(node.index, ()))
        boxes[node.index] = Box(lines, node.is_leaf, node.index in starts, called=called, told=told)
    return boxes


def saved_key(position: int) -> str:
    """Return the key of the line that shows a saved tensor, by its place among all that are saved."""
    return f"saved-{position}"


def scene(
    graph: Graph,
    boxes: Mapping[int, Box],
    labels: Mapping[tuple[int, int], tuple[Line, ...]] | None = None,
    apart: Sequence[tuple[Box, int, int | None]] = (),
) -> Scene:
    """Return what is to be drawn: a box for each node, small ones for outputs, and an arrow for each edge.

    `labels` has the lines that stand beside an edge, by the node that it starts from and the number of its input.
    `apart` has boxes of tensors without a link, each with the node that it went into and one that it came from, if any.
    """
    uses = Counter(edge.node for _, edge in graph.edges)
    copied = frozenset(node.index for node in graph.leaves if uses[node.index] > _USES)
    several = {edge.node for _, edge in graph.edges if edge.output}
    contents = {f"n{index}": box for index, box in boxes.items() if index not in copied}
    nodes = {f"n{index}": index for index in boxes if index not in copied}
    arrows: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for node in graph.nodes:
        for position, edge in enumerate(node.inputs):
            if edge is None:
                continue
            end = f"n{edge.node}"
            if edge.node in copied:
                end = f"n{edge.node}use{len(arrows)}"
                contents[end] = boxes[edge.node]
                nodes[end] = edge.node
            if edge.node in several:  # the output stands above its node, as a small box of its own
                port = f"{end}output{edge.output}"
                contents[port] = Box((Line(f"output {edge.output}"),), port=True)
                nodes[port] = edge.node
                arrows.setdefault((port, end, 0), []).append((node.index, position))
                end = port
            arrows[f"n{node.index}", end, len(arrows)] = [(node.index, position)]
    for number, (box, into, source) in enumerate(apart):
        name = f"apart{number}"
        contents[name], nodes[name] = box, -1 - number
        arrows[f"n{into}", name, len(arrows)] = []
        if source is not None and f"n{source}" in contents:
            arrows[name, f"n{source}", len(arrows)] = []
    return Scene(
        contents,
        nodes,
        tuple((start, end) for start, end, _ in arrows),
        tuple(tuple(edges) for edges in arrows.values()),
        tuple(_beside(contents[start], edges, labels or {}) for (start, _, _), edges in arrows.items()),
        copied,
    )


def numbers_told(boxes: Iterable[Box]) -> str:
    """Return the values that boxes show as a sentence of an alt text; of many only the first."""
    told = [text for box in boxes for text in box.told]
    return f" Values: {', '.join(told[:_TOLD])}{' and others' if len(told) > _TOLD else ''}." if told else ""


def _beside(
    start: Box, edges: Sequence[tuple[int, int]], labels: Mapping[tuple[int, int], tuple[Line, ...]]
) -> tuple[Line, ...]:
    """Return what stands beside an arrow: nothing where it joins an output to its node, or shows a cut."""
    return () if start.port or not edges else labels.get(edges[0], ())


def size_of(lines: Sequence[Line]) -> tuple[float, float]:
    """Return width and height of a box around lines of text, in px."""
    return max(_columns(line.text) for line in lines) * CHARACTER + 2 * PAD, len(lines) * LINE + PAD


def _columns(text: str) -> int:
    """Return how many characters wide a text is: Chinese and the like take two each."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _leaf_lines(node: Node, made: tuple[str, ...], values: Sequence[Value]) -> tuple[Line, ...]:
    name, *others = made or ("leaf",)
    more = tuple(Line(other) for other in others)
    if not values:
        return Line(f"{name} {node.shape or 'scalar'}", "title"), *more
    return (*value_lines(name, values[0], "title", f"value-{node.index}"), *more)


def _operation_lines(node: Node, made: tuple[str, ...], values: Sequence[Value]) -> tuple[Line, ...]:
    title = Line(node.name, "title")
    if values:
        key = f"value-{node.index}"
        pairs = zip(made, values, strict=False)
        shown = (value_lines(f"{_MADE} {name}", value, "value", key) for name, value in pairs)
        return title, *(line for lines in shown for line in lines)
    return (title, Line(f"{_MADE} {', '.join(made)}")) if made else (title,)


def value_lines(name: str, value: Value, style: str, key: str) -> Iterator[Line]:
    """Yield a name with its value in one line; or name and shape, and below them the numbers in rows, or a range.

    The first has `style`; what is no title has `key`.
    """
    first = "" if style == "title" else key
    if not value.shape:
        yield Line(f"{name} = {in_line(value)}", style, first)
        return
    yield Line(f"{name} {value.shape}", style, first)
    for row in in_rows(value.shape, value.numbers) or (extent(value),):
        yield Line(row, "value", key)


def _saved_line(entry: SavedTensor, key: str) -> Line:
    """Say what was saved: which of the named tensors, or whose memory it views; else its numbers, or its shape."""
    what = ""
    if entry.shape is not None:
        numbers = "" if entry.value is None else in_line(entry.value)
        if entry.label.startswith("view of"):
            what = f" {entry.shape or 'scalar'}, {entry.label}"
        elif entry.label:
            what = f" = {entry.label}" + (f" = {numbers}" if numbers and not entry.shape else "")
        else:
            what = f" = {numbers}" if numbers else f" {entry.shape or 'scalar'}"
    return Line(_STATE_TEXT[entry.state].format(entry.name + what), entry.state, key)
