"""`step`: a recorded backward pass to step through, wherever notebooks are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from course_utils.graph import captions
from course_utils.graph.events import Event
from course_utils.graph.recording import Recording
from course_utils.pictures.boxes import Box, Line, boxes_of, saved_key, scene
from course_utils.pictures.drawing import svg_of
from course_utils.pictures.layout import TooLargeToDraw
from course_utils.pictures.svg import image

# The browser draws a step of such a graph in a few milliseconds, and Graphviz lays it out in about a second.
MAX_BOXES, MAX_ARROWS = 400, 900

LEGEND = (
    "Round: leaf. Square: operation. Orange and thick: at work. Green: saved for backward. Struck through: freed. "
    "Blue: the gradient received, and at which step. Arrows go the way of gradients."
)

_HERE = Path(__file__).parent
_MARGINS = 260  # of a panel, besides its graph, in px
_TALLEST = 560  # graph, in px, before it scrolls; also in stepper.css


class Step(msgspec.Struct, frozen=True):
    """One frame: the node at work, the edges and saved tensors that change, by their keys in the picture."""

    node: int | None
    edges: tuple[str, ...]
    freed: tuple[str, ...]
    bytes: int
    caption: str
    failed: bool = False


class Panel(msgspec.Struct, frozen=True):
    """One pass, ready to be shown. `svg` is empty, and `trouble` says why, where only text can be given."""

    title: str
    alt: str
    before: str
    bytes: int
    most: int
    steps: tuple[Step, ...]
    svg: str
    trouble: str = ""


@dataclass(frozen=True)
class Stepper:
    """One or several passes on one slider. Shows itself in notebooks; `print` gives the steps as text."""

    panels: tuple[Panel, ...]

    @property
    def only_text(self) -> bool:
        """Whether a graph is too large to be drawn, or cannot be drawn here."""
        return any(panel.trouble for panel in self.panels)

    def __str__(self) -> str:
        return "\n\n".join(_text(panel, len(self.panels) > 1) for panel in self.panels)

    __repr__ = __str__

    def save(self, path: str | Path) -> None:
        """Write a page that needs no network and no kernel."""
        Path(path).write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """Return that page as text."""
        title = escape(_label(self.panels))
        stepper = f'<div id="stepper"></div><script>{_file("stepper.js")}\n{_mounted(self.panels)}</script>'
        body = "" if self.only_text else stepper
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width">'
            f"<style>body {{ margin: 0; background: #ffffff; color: #222222; font: 14px system-ui, sans-serif; }}\n"
            "h1 { font-size: 16px; margin: 6px 2px; }\n"
            f"{_file('stepper.css')}</style></head><body><main><h1>{title}</h1>{body}{_as_html(self.panels)}</main></body></html>"
        )

    def widget(self) -> Any:
        """Return a widget that is joined to the kernel: its `step` can be read and set from Python."""
        import anywidget
        import traitlets

        class Widget(anywidget.AnyWidget):
            _esm = f"{_file('stepper.js')}\n{_RENDER}"
            _css = _file("stepper.css")
            data = traitlets.Dict().tag(sync=True)
            step = traitlets.Int(0).tag(sync=True)

            def __repr__(self) -> str:  # the usual one holds an address
                return f"{_label(stepper.panels)}, at step {self.step}"

        stepper = self
        return Widget(data=msgspec.json.decode(_data(self.panels)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._html()}

    def _html(self) -> str:
        """Return what a notebook stores.

        The frame runs where the notebook is trusted, with or without a kernel. Elsewhere Jupyter removes frame and
        style, and what remains is the picture after the last step, and the steps as text.
        """
        text = _as_html(self.panels)
        if self.only_text:
            return f"<div>{text}</div>"
        pictures = "".join(image(panel.svg, panel.alt) for panel in self.panels)
        title = escape(_label(self.panels))
        return (
            f'<div class="course-stepper-output"><iframe title="{title}" srcdoc="{escape(self.page())}" '
            f'style="width:100%;height:{_height(self.panels)}px;border:0"></iframe>'
            "<style>.course-stepper-output iframe ~ .course-stepper-still{display:none}</style>"
            f'<div class="course-stepper-still">{pictures}{text}</div></div>'
        )


def step(*recordings: Recording, titles: Sequence[str] = ()) -> Stepper:
    """Return one recorded pass to step through, or several side by side on one slider.

    `titles` gives each a heading. Graphs of more than MAX_BOXES boxes come as text. Raises TypeError for anything that
    is not a Recording, and ValueError where the number of titles is another than that of recordings.
    """
    if not recordings:
        raise TypeError("step() got nothing to show: step(record_backward(loss))")
    for position, recording in enumerate(recordings, 1):
        if not isinstance(recording, Recording):
            raise TypeError(
                f"argument {position} of step() is of type {type(recording).__name__}, not a Recording: "
                "step(record_backward(loss))"
            )
    if isinstance(titles, str) or (titles and len(titles) != len(recordings)):
        given = "one text" if isinstance(titles, str) else f"{len(titles)} titles"
        raise ValueError(f"step() got {given} for {len(recordings)} recordings: give a list with one title for each")
    titles = titles or [f"Pass {number}" for number in range(1, len(recordings) + 1)] * (len(recordings) > 1) or [""]
    most = max(_most_bytes(recording) for recording in recordings)
    return Stepper(tuple(_panel(*pair, most) for pair in zip(recordings, titles, strict=True)))


def _panel(recording: Recording, title: str, most: int) -> Panel:
    kept = f"{recording.saved.bytes:,} bytes"
    before = f"Before the pass. The graph of {len(recording.graph.nodes)} nodes keeps {kept} for it."
    svg, trouble = "", ""
    alt = _alt(recording)
    steps = _steps(recording)
    try:
        svg = svg_of(scene(recording.graph, _boxes(recording, steps)), alt, MAX_BOXES, MAX_ARROWS)
    except (TooLargeToDraw, ImportError) as error:
        advice = "Record a part of it, for example one layer" if isinstance(error, TooLargeToDraw) else "Install it"
        trouble = f"No picture: {error}. {advice}. As text:"
    return Panel(title, alt, before, recording.saved.bytes, most, steps, svg, trouble)


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
    """Return the boxes of the graph, each with the step at which it ran, what it received, and what it freed."""
    boxes = boxes_of(recording.graph, recording.made, recording.saved)
    for number, (event, one) in enumerate(zip(recording.events, steps, strict=False), 1):
        box = boxes[event.node]
        lines = [replace(line, style="spent") if line.key in one.freed else line for line in box.lines]
        gradient = Line(f"step {number}: {_received(event)}", "gradient", f"gradient-{event.node}")
        boxes[event.node] = replace(box, lines=(*lines, gradient))
    return boxes


def _received(event: Event) -> str:
    return ", ".join("nothing" if gradient is None else captions.told(gradient) for gradient in event.received)


def _alt(recording: Recording) -> str:
    names = [captions.name_of(recording.graph, recording.made, event.node) for event in recording.events]
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    failed = "" if recording.failure is None else f" It ends with {recording.failure.type}."
    return (
        f"Backward pass over a graph of {len(recording.graph.nodes)} nodes. In order: {shown or 'nothing ran'}.{failed}"
    )


def _most_bytes(recording: Recording) -> int:
    return max([recording.saved.bytes, *(event.bytes for event in recording.events)])


def _label(panels: Sequence[Panel]) -> str:
    return "Backward pass, step by step" if len(panels) == 1 else f"{len(panels)} backward passes, step by step"


def _data(panels: Sequence[Panel]) -> bytes:
    """Return what stepper.js is given, as JSON."""
    steps = max(len(panel.steps) for panel in panels)
    return msgspec.json.encode({"label": _label(panels), "legend": LEGEND, "steps": steps, "panels": panels})


def _mounted(panels: Sequence[Panel]) -> str:
    """Return the call that shows the data, and that gives the frame in a notebook the height of its contents."""
    data = _data(panels).decode().replace("<", "\\u003c")
    return f'mountStepper(document.getElementById("stepper"), {data});\n{_FIT}'


_FIT = """
const fit = () => {
  try { window.frameElement.style.height = `${document.documentElement.getBoundingClientRect().height}px`; } catch {}
};
fit();
addEventListener("resize", fit);
document.addEventListener("toggle", fit, true);
"""

_RENDER = """
export default {
  render({ model, el }) {
    const stepper = mountStepper(el, model.get("data"), model.get("step"), (step) => {
      if (step !== model.get("step")) { model.set("step", step); model.save_changes(); }
    });
    model.on("change:step", () => stepper.show(model.get("step")));
    return stepper.stop;
  },
};
"""


def _text(panel: Panel, titled: bool) -> str:
    width = len(str(len(panel.steps)))
    rows = [f"{number:>{width}}. {one.caption}" for number, one in enumerate(panel.steps, 1)]
    head = [text for text in (panel.title if titled else "", panel.trouble, panel.before) if text]
    return "\n".join([*head, *rows])


def _as_html(panels: Sequence[Panel]) -> str:
    """Return the steps as a list that can be unfolded; unfolded already where it is all there is."""
    parts = []
    for panel in panels:
        rows = "".join(f"<li>{escape(one.caption)}</li>" for one in panel.steps)
        title = f"{panel.title}: the steps as text" if panel.title else "The steps as text"
        state = " open" if panel.trouble else ""
        inside = f"<summary>{escape(title)}</summary><p>{escape(panel.before)}</p><ol>{rows}</ol>"
        trouble = f"<p>{escape(panel.trouble)}</p>" if panel.trouble else ""
        parts.append(f"{trouble}<details{state}>{inside}</details>")
    return "".join(parts)


def _height(panels: Sequence[Panel]) -> int:
    """Return a frame's height in px, for viewers that do not let it find its own."""
    tallest = max(float(panel.svg.partition('height="')[2].partition('"')[0]) for panel in panels)
    return int(min(tallest, _TALLEST)) + _MARGINS + 40 * len(panels)


@cache
def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
