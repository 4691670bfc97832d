"""Where a graph was cut: inputs of an operation that have no link, which only who wrote the code can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from course_utils.graph.memory import memory_of, shape_of
from course_utils.graph.trace import Graph
from course_utils.graph.values import value_of
from course_utils.pictures.boxes import Box, Line, value_lines

Named = Mapping[int, Mapping[str, torch.Tensor]]


@dataclass(frozen=True)
class Cut:
    """A tensor without a gradient that went into node `into`. `beside` is the node whose result it was made from."""

    box: Box
    into: int
    beside: int | None
    sentence: str


def cuts_of(
    told: Mapping[str, str | Sequence[str]], names: Mapping[str, torch.Tensor], graph: Graph, named: Named, values: bool
) -> list[Cut]:
    """Return the cuts that `told` names: by a tensor's name, the name of the result, or results, that it went into.

    A result may be a cut tensor itself: then the tensor that went into it is what it was made from, and is drawn so.
    What the graph can tell is checked. Raises ValueError where a name is unknown, where the tensor needs a gradient, or
    where the operation that made the result has a link for each of its inputs.
    """
    pairs = [(name, result) for name, one in told.items() for result in ([one] if isinstance(one, str) else one)]
    origins = {result: name for name, result in pairs if result in told}
    cuts = []
    for name, result in pairs:
        if result not in origins:
            tensor, into = _checked(name, result, names, graph, named)
            beside, how = _origin(name, origins[name], named) if name in origins else _same_memory(tensor, named)
            lines = [*_lines(name, tensor, values), Line("needs no gradient", "apart")]
            sentence = f"{lines[0].text} went into {result} and has no link: no gradient passes"
            sentence += f", though it {how}." if how else "."
            if how:
                lines.append(Line(how, "apart"))
            box = Box(tuple(lines), apart=True, unseen=name in origins, called=lines[0].text)
            cuts.append(Cut(box, into, beside, sentence))
    return cuts


def _lines(name: str, tensor: torch.Tensor, values: bool) -> Sequence[Line]:
    value = value_of(tensor) if values else None
    if value is None:
        return (Line(f"{name} {shape_of(tensor) or 'scalar'}", "title"),)
    return tuple(value_lines(name, value, "title", ""))


def _checked(
    name: str, result: str, names: Mapping[str, torch.Tensor], graph: Graph, named: Named
) -> tuple[torch.Tensor, int]:
    for one in (name, result):
        if one not in names:
            raise ValueError(f"draw() got cuts={{{name!r}: {result!r}}}, but no tensor named {one!r}: add {one}={one}")
    if names[name].requires_grad:
        raise ValueError(f"{name} needs a gradient: its link to {result} is drawn as an arrow, and is no cut")
    into = next((index for index, own in named.items() if result in own), None)
    if into is None:
        raise ValueError(f"{result} is not in the drawn graph, so nothing can be said of what went into it")
    node = graph.nodes[into]
    if None not in node.inputs:
        raise ValueError(f"{node.name}, which made {result}, has a link for each of its inputs: {name} is none of them")
    return names[name], into


def _origin(name: str, origin: str, named: Named) -> tuple[int, str]:
    """Return the node of the tensor that a cut one was made from, and words for the box."""
    for index, own in named.items():
        if origin in own:
            return index, f"was made from {origin}"
    raise ValueError(f"draw() got cuts={{{origin!r}: {name!r}}}, but {origin} is not in the drawn graph")


def _same_memory(tensor: torch.Tensor, named: Named) -> tuple[int | None, str]:
    """Return the node of a tensor in the graph with the same memory, as `detach()` leaves it, and words for the box."""
    memory, size = memory_of(tensor)
    for index, own in named.items():
        for name, other in own.items():
            if size and memory_of(other)[0] == memory:
                return index, f"has {name}'s memory"
    return None, ""
