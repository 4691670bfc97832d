"""Pictures that are attached to tasks: each is drawn from the scene that its judge runs, so the two cannot part.

`python -m tests.attached` draws all anew and puts them into the masters; then `course build` releases them. The test
compares the stored ones with new ones.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from course_utils.checks.scenes.lesson_08_intermediate_gradients import read_the_layers
from course_utils.checks.scenes.lesson_09_practical_checklist import read_the_curves
from course_utils.pictures.svg import BLUE


def layers() -> Figure:
    """Draw the sizes of the weights' gradients in six networks."""
    figure, panels = plt.subplots(2, 3, figsize=(9, 4.6), sharex=True, sharey=True)
    lowest = 1e-6
    for panel, (name, net) in zip(panels.flat, read_the_layers.networks().items(), strict=True):
        for layer, size in enumerate(read_the_layers.sizes(net), start=1):
            if size:
                panel.bar(layer, size - lowest, bottom=lowest, color=BLUE)
            else:
                panel.text(layer, 2 * lowest, "none" if size is None else "0", rotation=90, ha="center", va="bottom")
        panel.set(
            title=name.replace("_", " "), yscale="log", ylim=(lowest, 10), xticks=range(1, read_the_layers.LAYERS + 1)
        )
    for panel in panels[1]:
        panel.set_xlabel("layer (1 is next to the input)")
    for panel in panels[:, 0]:
        panel.set_ylabel("norm of weight.grad")
    figure.tight_layout()
    return figure


def curves() -> Figure:
    """Draw the losses of six runs."""
    figure, panels = plt.subplots(2, 3, figsize=(9, 4.6), sharex=True, sharey=True)
    for panel, (name, loop) in zip(panels.flat, read_the_curves.RUNS.items(), strict=True):
        panel.plot(read_the_curves.curve(loop), ".-", color=BLUE, markersize=3, linewidth=1)
        panel.set(title=name.replace("_", " "), yscale="log", ylim=(0.005, 100), xticks=range(0, 81, 20))
        panel.grid(axis="both", color="#DDDDDD")
    for panel in panels[1]:
        panel.set_xlabel("step (4 are an epoch)")
    for panel in panels[:, 0]:
        panel.set_ylabel("loss over all rows")
    figure.tight_layout()
    return figure


# The picture of an exercise is attached to its task, under the exercise's name.
PICTURES: dict[str, Callable[[], Figure]] = {"read_the_layers": layers, "read_the_curves": curves}


def png(name: str) -> str:
    """Return an exercise's picture as a PNG of 90 dots an inch, in base64."""
    with plt.rc_context(plt.rcParamsDefault):
        figure = PICTURES[name]()
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=90, metadata={"Software": None})
        plt.close(figure)
    return base64.b64encode(file.getvalue()).decode()
