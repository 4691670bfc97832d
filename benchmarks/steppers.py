"""How long a stepper takes to build, and a step in a browser to be painted."""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.passes import SIZES
from benchmarks.timing import Row, medians
from course_utils import record_backward, step
from course_utils.graph.recording import Recording

SMALL, LARGE = 0.1, 2.0  # seconds to build a stepper for 20 nodes, and for 334
STEP = 50.0  # ms from a key press to the painted frame, at 60 nodes

# A message that is posted in a frame's last callback is handled after that frame has been painted.
_WATCH = """() => {
  window.times = [];
  addEventListener('keydown', () => {
    const start = performance.now();
    requestAnimationFrame(() => {
      const painted = new MessageChannel();
      painted.port1.onmessage = () => window.times.push(performance.now() - start);
      painted.port2.postMessage(0);
    });
  }, true);
}"""


def rows() -> Iterator[Row]:
    model, x = SIZES[1].build()
    for recording, limit in ((_chain(20), SMALL), (record_backward(model(x).sum()), LARGE)):
        taken = medians({"step": lambda recording=recording: step(recording)._repr_mimebundle_()}, rounds=9)["step"]
        what = f"`step` on {len(recording.graph.nodes)} nodes, as a notebook stores it"
        yield Row(what, f"{taken * 1e3:.0f} ms", f"under {limit * 1e3:.0f} ms", taken < limit)
    yield _painted(_chain(60))


def _chain(nodes: int) -> Recording:
    """Record a pass over a graph of so many nodes: a sum, one leaf, and pairs of a product and a tanh."""
    x = torch.rand(4, requires_grad=True)
    y = x
    for _ in range((nodes - 2) // 2):
        y = (y * x).tanh()
    return record_backward(y.sum(), x=x)


def _painted(recording: Recording) -> Row:
    what = f"a key press to the painted frame, at {len(recording.graph.nodes)} nodes"
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None or importlib.util.find_spec("playwright") is None:
        return Row(what, "not measured: it needs Chromium and playwright", "", True)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "pass.html"
        step(recording).save(path)
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        page.goto(path.as_uri())
        page.focus("input[type=range]")
        page.evaluate(_WATCH)
        for number in range(40):
            page.keyboard.press("ArrowRight")
            page.wait_for_function("number => window.times.length > number", arg=number)
        times = page.evaluate("window.times")
        chromium.close()
    slowest = f"{max(times):.0f} ms at most" if times else ""
    median = statistics.median(times)
    return Row(what, f"{median:.0f} ms, {slowest}", f"under {STEP:.0f} ms", median < STEP)
