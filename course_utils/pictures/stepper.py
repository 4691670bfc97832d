"""`step`: a recorded backward pass to step through, wherever notebooks are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from course_utils.graph.recording import Recording
from course_utils.pictures.colours import style
from course_utils.pictures.drawing import VARIABLES, rules, themed
from course_utils.pictures.frames import Panel, panel_of
from course_utils.pictures.svg import Direction, check_direction, image

LEGEND = (
    "Round: leaf. Square: operation. Orange and thick: at work. Green: saved for backward. Struck through: freed. "
    "Blue: gradients. Beside an arrow: by what the node multiplied, where that can be known, and the gradient that it "
    "sent. In a box: what it received, and in which turn. Arrows go the way of gradients; in the forward steps, the "
    "way of values."
)

_HERE = Path(__file__).parent
_MARGINS = 310  # of a panel, besides its graph, in px
_TALLEST = 720  # graph, in px, before it scrolls; also in stepper.css


@dataclass(frozen=True)
class Stepper:
    """One or several passes on one slider. Shows itself in notebooks; `print` gives the steps as text."""

    panels: tuple[Panel, ...]
    direction: Direction = "gradients"
    at: int | None = None

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
        stepper = (
            f'<div id="stepper">{_waiting(self.panels)}</div><script>{_file("stepper.js")}\n{_mounted(self)}</script>'
        )
        body = "" if self.only_text else stepper
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width">'
            f"<style>{style('body')} body {{ margin: 0; background: var(--paper); color: var(--ink); "
            "font: 14px system-ui, sans-serif; }\nh1 { font-size: 16px; margin: 6px 2px; }\n"
            f"{_style()}</style></head><body><main><h1>{title}</h1>{body}{_as_html(self.panels)}</main></body></html>"
        )

    def widget(self) -> Any:
        """Return a widget that is joined to the kernel: its `step` can be read and set from Python."""
        import anywidget
        import traitlets

        stepper, start = self, -_ahead(self.panels) if self.at is None else self.at

        class Widget(anywidget.AnyWidget):
            _esm = f"{_file('stepper.js')}\n{_RENDER}"
            _css = _style()
            data = traitlets.Dict().tag(sync=True)
            step = traitlets.Int(start).tag(sync=True)

            def __repr__(self) -> str:  # the usual one holds an address
                return f"{_label(stepper.panels)}, at step {self.step}"

        return Widget(data=msgspec.json.decode(_data(self)))

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
        pictures = "".join(image(themed(panel.svg), panel.alt) for panel in self.panels)
        title = escape(_label(self.panels))
        return (
            f'<div class="course-stepper-output"><iframe title="{title}" srcdoc="{escape(self.page())}" '
            f'style="width:100%;height:{_height(self.panels)}px;border:0"></iframe>'
            "<style>.course-stepper-output iframe ~ .course-stepper-still{display:none}</style>"
            f'<div class="course-stepper-still">{pictures}{text}</div></div>'
        )


def step(
    *recordings: Recording,
    titles: Sequence[str] = (),
    forward: bool = True,
    direction: Direction = "gradients",
    at: int | None = None,
) -> Stepper:
    """Return one recorded pass to step through, or several side by side on one slider.

    Passes of an engine of your own (lesson 11) can stand beside PyTorch's.

    Where a result in the graph was named, and nothing is freed yet, the steps of the forward pass come first, in the
    order in which PyTorch recorded them; `forward=False` leaves them out. `titles` gives each pass a heading. With
    `direction="code"` inputs are at the top; a button turns the picture. The slider begins at the first step, or at
    step `at` of the backward pass. Graphs of more than 400 boxes come as text.

    Raises TypeError for anything that is not a Recording, and ValueError for another direction, for a step that the
    pass has not, and where the number of titles is another than that of recordings.
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
    check_direction(direction, "step")
    longest = max(len(recording.events) for recording in recordings)
    if at is not None and at not in range(longest + 1):
        raise ValueError(f"step() got at={at!r}: the pass has {longest} steps, so give a number from 0 to {longest}")
    titles = titles or [f"Pass {number}" for number in range(1, len(recordings) + 1)] * (len(recordings) > 1) or [""]
    most = max(_most_bytes(recording) for recording in recordings)
    panels = tuple(panel_of(*pair, most, forward) for pair in zip(recordings, titles, strict=True))
    return Stepper(panels, direction, at)


def _most_bytes(recording: Recording) -> int:
    return max([recording.saved.bytes, *(event.bytes for event in recording.events)])


def _label(panels: Sequence[Panel]) -> str:
    return "Backward pass, step by step" if len(panels) == 1 else f"{len(panels)} backward passes, step by step"


def _ahead(panels: Sequence[Panel]) -> int:
    """Return how many places the slider has before the backward pass; they are numbered from minus this to -1."""
    return max(len(panel.forward) for panel in panels)


def _how(panels: Sequence[Panel]) -> str:
    """Return what to do, and what will be seen. It stands above the picture, and in its place until that is there."""
    order = (
        "first the forward pass, where each operation fills its box, then the backward pass" if _ahead(panels) else ""
    )
    return (
        f"Press Next, or the right arrow key, to go one step on{order and f': {order}'}. "
        "Orange is the node that runs, with the gradient that it received and those that it sends."
    )


def _waiting(panels: Sequence[Panel]) -> str:
    """Return the box that is seen before the script has drawn the picture, and where scripts are switched off."""
    return (
        f'<section class="course-stepper"><p class="how">{escape(_how(panels))}</p><p>The picture comes here when the '
        "page's script has run. Where scripts are switched off, the steps stand below as text.</p></section>"
    )


def _data(stepper: Stepper) -> bytes:
    """Return what stepper.js is given, as JSON."""
    panels = stepper.panels
    return msgspec.json.encode(
        {
            "label": _label(panels),
            "how": _how(panels),
            "legend": LEGEND,
            "steps": max(len(panel.steps) for panel in panels),
            "ahead": _ahead(panels),
            "asCode": stepper.direction == "code",
            "panels": panels,
        }
    )


def _mounted(stepper: Stepper) -> str:
    """Return the call that shows the data, and what joins the frame in a notebook to the page around it."""
    data = _data(stepper).decode().replace("<", "\\u003c")
    start = "" if stepper.at is None else f", {stepper.at}"
    return f'mountStepper(document.getElementById("stepper"), {data}{start});\n{_FIT}'


_FIT = """
const fit = () => {
  try { window.frameElement.style.height = `${document.documentElement.getBoundingClientRect().height}px`; } catch {}
};
fit();
addEventListener("resize", fit);
document.addEventListener("toggle", fit, true);
const follow = () => { document.body.dataset.jpThemeLight = parent.document.body.dataset.jpThemeLight; };
try {
  if (parent !== window && "jpThemeLight" in parent.document.body.dataset) {
    follow();
    new MutationObserver(follow).observe(parent.document.body, { attributeFilter: ["data-jp-theme-light"] });
  }
} catch {}
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
    ahead = [one.caption for one in panel.forward]
    head = [text for text in (panel.title if titled else "", panel.trouble, *ahead, panel.before) if text]
    return "\n".join([*head, *rows])


def _as_html(panels: Sequence[Panel]) -> str:
    """Return the steps as a list that can be unfolded; unfolded already where it is all there is."""
    parts = []
    for panel in panels:
        rows = "".join(f"<li>{escape(one.caption)}</li>" for one in panel.steps)
        title = f"{panel.title}: the steps as text" if panel.title else "The steps as text"
        state = " open" if panel.trouble else ""
        ahead = "".join(f"<li>{escape(one.caption)}</li>" for one in panel.forward)
        ahead = f"<ul>{ahead}</ul>" if ahead else ""
        inside = f"<summary>{escape(title)}</summary>{ahead}<p>{escape(panel.before)}</p><ol>{rows}</ol>"
        trouble = f"<p>{escape(panel.trouble)}</p>" if panel.trouble else ""
        parts.append(f"{trouble}<details{state}>{inside}</details>")
    return "".join(parts)


def _height(panels: Sequence[Panel]) -> int:
    """Return a frame's height in px, for viewers that do not let it find its own."""
    tallest = max(float(panel.svg.partition('height="')[2].partition('"')[0]) for panel in panels)
    return int(min(tallest, _TALLEST)) + _MARGINS + 40 * len(panels)


def _style() -> str:
    return f"{style('.course-stepper')}\n.course-stepper {{ {rules(VARIABLES)} }}\n{_file('stepper.css')}"


@cache
def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
