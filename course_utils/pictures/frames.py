"""What each frame of a stepper shows: the forward pass where it is known, then the backward pass, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from course_utils.graph import captions, forward
from course_utils.graph.events import Event, Gradient
from course_utils.graph.recording import Recording
from course_utils.graph.saved import Saved
from course_utils.graph.values import in_rows
from course_utils.pictures.boxes import Box, Line, Scene, boxes_of, numbers_told, saved_key, scene
from course_utils.pictures.drawing import svg_of
from course_utils.pictures.layout import TooLargeToDraw

# The browser draws a step of such a graph in a few milliseconds, and Graphviz lays it out in about a second.
MAX_BOXES, MAX_ARROWS = 400, 900

# With more edges their numbers would hide the picture, and Graphviz would take long to place them.
_LABELLED = 60

# An alt text says so many steps.
_TOLD = 12


class Step(msgspec.Struct, frozen=True):
    """One frame: the node at work, the edges and saved tensors that change, by their keys in the picture."""

    node: int | None
    edges: tuple[str, ...]
    freed: tuple[str, ...]
    bytes: int
    caption: str
    failed: bool = False


class Panel(msgspec.Struct, frozen=True):
    """One pass, ready to be shown. `svg` is empty, and `trouble` says why, where only text can be given.

    `bytes` is None where it is not known what the graph keeps. `forward` has a frame for the start and one for each
    operation; it is empty where the forward pass is not shown.
    """

    title: str
    alt: str
    before: str
    bytes: int | None
    most: int
    forward: tuple[Step, ...]
    steps: tuple[Step, ...]
    svg: str
    trouble: str = ""


def panel_of(recording: Recording, title: str, most: int, with_forward: bool) -> Panel:
    """Return the frames of one recording. `most` are the bytes that fill the bar."""
    count, kept = len(recording.graph.nodes), None if recording.own else recording.saved.bytes
    if kept is None:
        before = f"Before the pass. The graph has {count} nodes. What they keep only your engine knows."
    else:
        before = f"Before the pass. The graph of {count} nodes keeps {kept:,} bytes for it."
    svg, trouble = "", ""
    steps = _steps(recording)
    boxes = _boxes(recording, steps)
    alt = _alt(recording) + numbers_told(boxes.values())
    ahead = _forward(recording) if with_forward and _knows_forward(recording) else ()
    try:
        labels = _labels(recording) if len(recording.graph.edges) <= _LABELLED else {}
        svg = svg_of(scene(recording.graph, boxes, labels), alt, MAX_BOXES, MAX_ARROWS)
    except (TooLargeToDraw, ImportError) as error:
        advice = "Record a part of it, for example one layer" if isinstance(error, TooLargeToDraw) else "Install it"
        trouble = f"No picture: {error}. {advice}. As text:"
    return Panel(title, alt, before, kept, most, ahead, steps, svg, trouble)


def at_once(recording: Recording, apart: Sequence[tuple[Box, int, int | None]] = ()) -> tuple[Scene, str]:
    """Return a whole pass as one picture, and what it tells in words: what each node received, and what each arrow
    brought. What was saved and freed is left to the steps. `apart` has the cuts to be shown, as `scene` takes them."""
    boxes = _ran(boxes_of(recording.graph, recording.made, Saved(()), recording.forward.values), recording)
    told = " ".join(recording.captions()[:_TOLD])
    alt = f"{_alt(recording)} {told}{numbers_told(boxes.values())}"
    return scene(recording.graph, boxes, _labels(recording), apart), alt


def _knows_forward(recording: Recording) -> bool:
    """Say whether there is a result to show, and all that the forward pass had saved is still there."""
    results = any(index in recording.forward.values for index in recording.forward.order)
    return results and not recording.saved.freed


def _forward(recording: Recording) -> tuple[Step, ...]:
    graph, saved = recording.graph, recording.saved
    start, *told = forward.steps(graph, recording.made, saved, recording.forward)
    steps = [Step(None, (), (), 0, start)]
    storages: dict[int | None, int] = {}
    for index, caption in zip(recording.forward.order, told, strict=True):
        edges = (f"{index}-{place}" for place, edge in enumerate(graph.nodes[index].inputs) if edge is not None)
        storages |= {entry.storage: entry.bytes for entry in saved if entry.node == index and not entry.leaf}
        steps.append(Step(index, tuple(edges), (), sum(storages.values()), caption))
    return tuple(steps)


def _steps(recording: Recording) -> tuple[Step, ...]:
    keys = {(entry.node, entry.name): saved_key(position) for position, entry in enumerate(recording.saved)}
    told = recording.captions()
    steps = []
    for event, caption in zip(recording.events, told, strict=False):
        edges = [f"{event.node}-{position}" for position, sent in enumerate(event.sent) if sent is not None]
        freed = tuple(keys[event.node, name] for name in event.freed)
        steps.append(Step(event.node, tuple(edges), freed, event.bytes, caption))
    if recording.failure is not None:
        left = steps[-1].bytes if steps else recording.saved.bytes
        steps.append(Step(recording.failure.node, (), (), left, told[-1], failed=True))
    return tuple(steps)


def _boxes(recording: Recording, steps: Sequence[Step]) -> dict[int, Box]:
    """Return the boxes of the graph, each with what it saved and freed, its turn, and what it received."""
    boxes = boxes_of(recording.graph, recording.made, recording.saved, recording.forward.values)
    for event, one in zip(recording.events, steps, strict=False):
        box = boxes[event.node]
        lines = [replace(line, style="spent") if line.key in one.freed else line for line in box.lines]
        boxes[event.node] = replace(box, lines=tuple(lines))
    return _ran(boxes, recording)


def _ran(boxes: Mapping[int, Box], recording: Recording) -> dict[int, Box]:
    """Return the boxes with a line more each: the turn of its node, and what it received, or that it raised."""
    ran = dict(boxes)
    for number, event in enumerate(recording.events, 1):
        box = ran[event.node]
        gradient = Line(f"turn {number}: {_received(event, box.leaf)}", "gradient", f"gradient-{event.node}")
        ran[event.node] = replace(box, lines=(*box.lines, gradient))
    if recording.failure is not None and recording.failure.node is not None:
        number, node = len(recording.events) + 1, recording.failure.node
        raised = Line(f"turn {number}: {recording.failure.type}", "gradient", f"gradient-{node}")
        ran[node] = replace(ran[node], lines=(*ran[node].lines, raised))
    return ran


def _received(event: Event, leaf: bool) -> str:
    if leaf:
        return f".grad = {'None' if event.after is None else captions.told(event.after)}"
    return ", ".join("nothing" if gradient is None else captions.told(gradient) for gradient in event.received)


def _labels(recording: Recording) -> dict[tuple[int, int], tuple[Line, ...]]:
    """Return what stands beside each arrow: by what the node multiplied, and the gradient that it sent."""
    labels = {}
    for event in recording.events:
        for position, sent in enumerate(event.sent):
            if sent is not None:
                factor = recording.factor(event, position)
                numbers = [Line(row, "gradient") for row in _rows(sent)]
                labels[event.node, position] = (*([Line(factor, "factor")] if factor else []), *numbers)
    return labels


def _rows(gradient: Gradient) -> tuple[str, ...]:
    return in_rows(gradient.shape, gradient.values) or (captions.told(gradient),)


def _alt(recording: Recording) -> str:
    names = [captions.name_of(recording.graph, recording.made, event.node) for event in recording.events]
    shown = ", ".join(names[:_TOLD]) + (f" and {len(names) - _TOLD} more" if len(names) > _TOLD else "")
    failed = "" if recording.failure is None else f" It ends with {recording.failure.type}."
    return (
        f"Backward pass over a graph of {len(recording.graph.nodes)} nodes. In order: {shown or 'nothing ran'}.{failed}"
    )
