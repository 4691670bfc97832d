"""What a picture of a graph holds: boxes with lines of text, and arrows between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from unicodedata import east_asian_width

from course_utils.graph.saved import Saved, SavedTensor
from course_utils.graph.trace import Graph, Node

CHARACTER, LINE, PAD = 7.25, 17.0, 8.0  # of a 12 px monospaced font, in px

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
    """One line of text in a box. `key` marks it for whoever wants to find it in the picture."""

    text: str
    style: str = "plain"
    key: str = ""


@dataclass(frozen=True)
class Box:
    """One box: what it says, and whether it stands for a leaf, for a start, or for one of several outputs."""

    lines: tuple[Line, ...]
    leaf: bool = False
    start: bool = False
    port: bool = False

    @property
    def size(self) -> tuple[float, float]:
        return max(_columns(line.text) for line in self.lines) * CHARACTER + 2 * PAD, len(self.lines) * LINE + PAD


@dataclass(frozen=True)
class Scene:
    """Boxes by name, and arrows between them.

    `nodes` has the node that each box belongs to. `edges` has for each arrow the edges that it stands for: the
    number of the node that an edge starts from, and of its input. `copied` says that leaves are drawn several times.
    """

    boxes: Mapping[str, Box]
    nodes: Mapping[str, int]
    arrows: tuple[tuple[str, str], ...]
    edges: tuple[tuple[tuple[int, int], ...], ...]
    copied: frozenset[int]


def boxes_of(graph: Graph, made: Mapping[int, tuple[str, ...]], saved: Saved) -> dict[int, Box]:
    """Return a box for each node: its name, the named tensors that it made, and what it saved."""
    kept: dict[int, list[Line]] = {}
    for position, entry in enumerate(saved):
        kept.setdefault(entry.node, []).append(_saved_line(entry, saved_key(position)))
    starts = {edge.node for edge in graph.outputs if edge is not None}
    boxes = {}
    for node in graph.nodes:
        own = made.get(node.index, ())
        lines = _leaf_lines(node, own) if node.is_leaf else _operation_lines(node, own)
        boxes[node.index] = Box((*lines, *kept.get(node.index, ())), node.is_leaf, node.index in starts)
    return boxes


def saved_key(position: int) -> str:
    """Return the key of the line that shows a saved tensor, by its place among all that are saved."""
    return f"saved-{position}"


def scene(graph: Graph, boxes: Mapping[int, Box]) -> Scene:
    """Return what is to be drawn: a box for each node, small ones for outputs, and an arrow for each edge."""
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
    return Scene(
        contents,
        nodes,
        tuple((start, end) for start, end, _ in arrows),
        tuple(tuple(edges) for edges in arrows.values()),
        copied,
    )


def _columns(text: str) -> int:
    """Return how many characters wide a text is: Chinese and the like take two each."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _leaf_lines(node: Node, made: tuple[str, ...]) -> tuple[Line, ...]:
    name, *others = made or ("leaf",)
    return Line(f"{name} {node.shape or 'scalar'}", "title"), *(Line(other) for other in others)


def _operation_lines(node: Node, made: tuple[str, ...]) -> tuple[Line, ...]:
    title = Line(node.name, "title")
    return (title, Line("makes " + ", ".join(made))) if made else (title,)


def _saved_line(entry: SavedTensor, key: str) -> Line:
    """Say what was saved: which of the named tensors, or whose memory it views; else its shape."""
    what = ""
    if entry.shape is not None:
        what = f" {entry.shape or 'scalar'}"
        if entry.label:
            what = f"{what}, {entry.label}" if entry.label.startswith("view of") else f" = {entry.label}"
    return Line(_STATE_TEXT[entry.state].format(entry.name + what), entry.state, key)
