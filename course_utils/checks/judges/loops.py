"""What a training loop retained, and whether it trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from course_utils.checks.compare import close, counted
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.as_found import as_found


def moved(received: Value, right: list[torch.Tensor]) -> bool:
    """Return whether parameters are where they should be."""
    return isinstance(received, list) and all(close(mine, its) for mine, its in zip(received, right, strict=True))


def turns(
    seen: Observation,
    count: int,
    ran: str = "The model's last layer",
    what: str = "batches",
    groups: tuple[int, str] | None = None,
) -> Iterator[Finding]:
    """Judge that each batch took one run, pass and step. Where one did not, the numbers only follow from that.

    With `groups`, how many and in which words, each of these took one pass and step.
    """
    rounds, grouped = groups or (count, "")
    runs, passes, steps = seen["runs"], seen["passes"], seen["steps"]
    yield Finding("forwards", runs == count, f"{ran} ran {times(runs)} for {count} {what}.")
    text = f"{counted(passes)} ran for {count} {what}{grouped}."
    yield Finding("passes", passes == rounds, text)
    text = f"The optimizer stepped {times(len(steps))} for {count} {what}{grouped}."
    yield Finding("steps", len(steps) == rounds, text)


def lean(seen: Observation, what: str = "batches", own: Sequence[int] = ()) -> Iterator[Finding]:
    """Judge that a step found no more than its own graphs, and that all around the loop is as it was.

    `own` says of each step how many graphs are its own; without it, one.
    """
    steps = seen["steps"]
    kept = [step["kept"] for step in steps]
    text = f"Saved tensors still held when the optimizer steps, step by step: {kept}. A pass should have freed them."
    yield Finding("kept", not any(kept), text)
    graphs = [step["graphs"] for step in steps]
    more = f"; the {what} have {list(own)} of their own." if own else ". Something refers to those of earlier runs."
    text = f"Graphs alive at each optimizer step: {graphs}{more}"
    own = own or [1] * len(steps)
    few = all(alive <= its for alive, its in zip(graphs, own, strict=False))
    states = [step["states"] for step in steps]
    # Beside its own states, a name may still stand for the one that the chunk before ended with.
    if any(alive > its + 1 for alive, its in zip(states, own, strict=False)):
        few = False
        text = f"States whose graph is alive at each optimizer step, held by a name, a list or a loss: {states}{more}"
    yield Finding("graphs", few, text)
    yield as_found(seen)


def times(count: int) -> str:
    """Write how often: "once", "3 times"."""
    return "once" if count == 1 else f"{count} times"


def trains(seen: Observation) -> bool:
    """Say whether a gradient reached the model's own parameters before some step."""
    return not all(step["no gradient"] for step in seen["steps"])


def retains(seen: Observation) -> bool:
    """Say whether each step found saved tensors that no pass would use."""
    return bool(seen["steps"]) and all(step["kept"] != 0 for step in seen["steps"])


def no_gradient(layer: str = "the model's last layer") -> Misconception:
    """Return the slip of a loop whose passes come to a layer, and whose steps find nothing in its `.grad`."""
    return Misconception(
        "no gradient at the step",
        f"Passes ran, and when your optimizer stepped, .grad held None or zeros for {layer}: it was cleared after the "
        "pass, the pass came after the step, or the gradients went somewhere else.",
        lambda case, seen: seen["reached"] > 0 and bool(seen["steps"]) and not trains(seen),
        hint="What is in .grad at the moment of the step? Clear, go back, step: in that order.",
    )


def cleared_otherwise(explains: Callable[[Case, Observation, str], bool]) -> tuple[Misconception, Misconception]:
    """Return the two ways to clear .grad at another time: "never" and "after each step".

    `explains` says whether clearing so leads to what was seen.
    """
    return (
        Misconception(
            "never cleared",
            "Your parameters are those of a loop that never clears .grad: each pass adds to what was there.",
            lambda case, seen: explains(case, seen, "never"),
            hint="The given loop clears .grad before each pass. Where does yours?",
        ),
        Misconception(
            "cleared too late",
            "Your parameters are those of a loop that clears .grad after each step only. What .grad held when your "
            "function was called went into the first step.",
            lambda case, seen: explains(case, seen, "after each step"),
            hint="When your function is called, .grad may hold something already. The given loop clears it before "
            "the first pass.",
        ),
    )
