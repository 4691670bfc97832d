"""What a training loop retained, and whether it trained."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close
from course_utils.checks.data import Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.lesson_04_retain_graph.as_found import as_found


def moved(received: Value, right: list[torch.Tensor]) -> bool:
    return isinstance(received, list) and all(close(mine, its) for mine, its in zip(received, right, strict=True))


def lean(seen: Observation, count: int) -> Iterator[Finding]:
    forwards, passes, steps = seen["forwards"], seen["passes"], seen["steps"]
    yield Finding("forwards", forwards == count, f"The model ran {forwards} times for {count} batches.")
    yield Finding("passes", passes == count, f"{passes} backward passes ran for {count} batches.")
    yield Finding("steps", len(steps) == count, f"The optimizer made {len(steps)} steps for {count} batches.")
    kept = [step["kept"] for step in steps]
    text = f"Saved tensors still held when the optimizer steps, step by step: {kept}. No pass will use them."
    yield Finding("kept", not any(kept), text)
    graphs = [step["graphs"] for step in steps]
    text = f"Graphs alive at each optimizer step: {graphs}. Something refers to those of earlier batches."
    yield Finding("graphs", max(graphs, default=0) <= 2, text)
    yield as_found(seen)


def trains(seen: Observation) -> bool:
    """Say whether a gradient reached the model's own parameters before some step."""
    return not all(step["no gradient"] for step in seen["steps"])


def retains(seen: Observation) -> bool:
    return bool(seen["steps"]) and all(step["kept"] != 0 for step in seen["steps"])
