"""Small graphs with one difficulty each, made from a seed: for answers that read or walk a real graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.checks.scenes.lesson_02_how_backward_works.models import Trial, conv_net, lstm, mlp, transformer
from course_utils.checks.scenes.numbers import numbers


@dataclass(frozen=True)
class Scene:
    """A loss, the leaves that it depends on, and each gradient that reached the scene's custom Function.

    `parts` are the terms of the loss, where each sends a gradient of its own to a leaf that they share. `earlier` is
    another result of a part of the graph, about which an answer is asked before.
    """

    loss: torch.Tensor
    leaves: dict[str, torch.Tensor]
    arrived: list[torch.Tensor] = field(default_factory=list)
    parts: tuple[torch.Tensor, ...] = ()
    earlier: torch.Tensor | None = None


def written_since(scene: Scene) -> torch.Tensor:
    """Return the loss, which is written to in place where there is an earlier result: another graph is behind it."""
    return scene.loss if scene.earlier is None else scene.loss.neg_()


class Square(torch.autograd.Function):
    """x * x as a custom Function. Its backward writes down what arrives."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = ctx.saved_tensors[0]
        ctx.arrived.append(gradients[0].clone())
        return 2 * x * gradients[0]


def square(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return x * x, made by Square, and the list into which its backward writes."""
    result: Any = Square.apply(x)  # type: ignore[no-untyped-call]
    result.grad_fn.arrived = []
    return result, result.grad_fn.arrived


def leaf(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a leaf that requires grad."""
    return numbers(seed, *shape, dtype=dtype).requires_grad_()


def long_then_short(seed: int) -> Scene:
    x = leaf(seed, 3)
    fork, arrived = square(x)
    long = (fork * 0.3).sin().exp()
    return Scene((long + fork * 3).sum(), {"x": x}, arrived)


def short_then_long(seed: int) -> Scene:
    x = leaf(seed, 3)
    fork, arrived = square(x)
    short = fork * 3
    return Scene((short * (fork * 0.3).sin().exp()).sum(), {"x": x}, arrived)


class Scaled(torch.autograd.Function):
    """a * b. Its backward gives a gradient for both, also where one needs none."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = ctx.saved_tensors
        return gradients[0] * b, gradients[0] * a


def many_paths(seed: int) -> Scene:
    """Two ways to go at each of ten places, behind gradients that nobody takes: for the first input and the last."""
    x = leaf(seed, 2)
    fork, arrived = square(x)
    scale = numbers(seed + 1, 2).abs()
    h: Any = Scaled.apply(scale, Scaled.apply(fork, scale))  # type: ignore[no-untyped-call]
    for _ in range(10):
        h = h * 0.7 + h.tanh()
    return Scene(h.sum(), {"x": x}, arrived)


def shared_leaf(seed: int) -> Scene:
    """A weight that is used in three terms, after paths of different lengths."""
    weight, x, y = leaf(seed, 3, 4), numbers(seed + 1, 5, 3), numbers(seed + 2, 2, 3)
    parts = (x @ weight).sin().exp().mean(), (y @ weight).cos().sum(), 0.7 * weight.square().sum()
    return Scene(parts[0] + parts[1] + parts[2], {"weight": weight}, parts=parts)


def handed_on_twice(seed: int) -> Scene:
    """Each addition hands one gradient tensor to both of its inputs, which get more from elsewhere."""
    a, b, c, d = (leaf(seed + offset, 2, 3) for offset in range(4))
    scales = [numbers(seed + offset, 2, 3) for offset in range(4, 10)]
    early = (a + b) * scales[0]
    late = ((c + d) * scales[1]).sin().cos()
    more = (a * scales[2] + b * scales[3]).sin().cos()
    again = c * scales[4] + d * scales[5]
    parts = early.sum(), late.sum(), more.sum(), again.sum()
    return Scene((early + late + more + again).sum(), {"a": a, "b": b, "c": c, "d": d}, parts=parts)


def handed_on_early(seed: int) -> Scene:
    """The addition that hands one gradient to two results is the newest; each result gets more afterwards."""
    x, scale = leaf(seed, 2, 3), numbers(seed + 1, 2, 3)
    a, b = x.sin(), x.cos()
    more_a, more_b = 3 * a, 5 * b
    both = a + b
    return Scene(((more_a + more_b + both) * scale).sum(), {"x": x}, parts=_four_parts(a, b, scale))


def handed_on_late(seed: int) -> Scene:
    """The same sum with the shared addition made first, and met first."""
    x, scale = leaf(seed, 2, 3), numbers(seed + 1, 2, 3)
    a, b = x.sin(), x.cos()
    both = a + b
    more_a, more_b = 3 * a, 5 * b
    return Scene(((both + (more_a + more_b)) * scale).sum(), {"x": x}, parts=_four_parts(a, b, scale))


def _four_parts(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple((factor * part * scale).sum() for factor, part in ((3, a), (5, b), (1, a), (1, b)))


def handed_on_to_leaves(seed: int) -> Scene:
    """Additions hand one gradient to two leaves, and one leaf of each pair gets more later, whatever runs first.

    The sines are older than the additions, and stand behind one of them and in front of the other.
    """
    a, b, c, d = (leaf(seed + offset, 2, 3) for offset in range(4))
    scale, behind, before = numbers(seed + 4, 2, 3), a.sin(), c.sin()
    loss = ((((a + b) + behind) * scale) + ((before + (c + d)) * scale)).sum()
    parts = tuple((part * scale).sum() for part in (a + b, a.sin(), c + d, c.sin()))
    return Scene(loss, {"a": a, "b": b, "c": c, "d": d}, parts=parts)


def two_results(seed: int) -> Scene:
    """What two results share saves nothing, so that a pass from one leaves the other as it was."""
    a, b = leaf(seed, 3), leaf(seed + 1, 3)
    shared = -(a + b)
    earlier = shared.cos().sum()
    parts = shared.sin().sum(), (-2 * shared).sum()
    return Scene(parts[0] + parts[1], {"a": a, "b": b}, parts=parts, earlier=earlier)


def times_itself(seed: int) -> Scene:
    """Two edges lead from one node to the leaf."""
    x = leaf(seed, 3)
    return Scene((x * x).sum(), {"x": x})


def result_times_itself(seed: int) -> Scene:
    """Two edges lead from one node to an operation."""
    x = leaf(seed, 3)
    h = x.exp()
    return Scene((h * h).sum(), {"x": x})


def times_itself_and_more(seed: int) -> Scene:
    """Each leaf is met by two edges at once, and is not complete then."""
    x, z = leaf(seed, 3), leaf(seed + 1, 3)
    more_x, more_z = x.sin().cos(), z.sin().cos()
    parts = (x * x).sum(), more_x.sum(), (z * z).sum(), more_z.sum()
    return Scene(((x * x + more_x) + (more_z + z * z)).sum(), {"x": x, "z": z}, parts=parts)


class Detour(torch.autograd.Function):
    """h + a * 3, which sends no gradient to h: not to the last input, so that what is left out shifts the rest."""

    @staticmethod
    def forward(ctx: Any, h: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return h + a * 3

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, 3 * gradients[0]


def nothing_for_one_input(seed: int) -> Scene:
    """A custom Function returns None for a tensor that is used elsewhere, too."""
    a = leaf(seed, 3)
    h = a.exp()
    detour: Any = Detour.apply(h, a)  # type: ignore[no-untyped-call]
    bent = h.sin()
    return Scene((detour + bent).sum(), {"a": a}, parts=((3 * a).sum(), bent.sum()))


def broadcasting(seed: int) -> Scene:
    row, column, scalar = leaf(seed, 5), leaf(seed + 1, 3, 1), leaf(seed + 2)
    x = numbers(seed + 3, 2, 3, 5)
    return Scene(((x * row + column).sin() * scalar).sum(), {"row": row, "column": column, "scalar": scalar})


def broadcasting_a_result(seed: int) -> Scene:
    """What is stretched is no leaf, and its node cares for dimensions."""
    row, x = leaf(seed, 5), numbers(seed + 1, 2, 3, 5)
    return Scene((x * row.flip(0)).sin().sum(), {"row": row})


def two_dtypes(seed: int) -> Scene:
    single, double = leaf(seed, 4), leaf(seed + 1, 4, dtype=torch.float64)
    return Scene((single * double).sum(), {"single": single, "double": double})


def unused_output(seed: int) -> Scene:
    """The leaf behind the unused output gets a gradient, too: one of zeros."""
    leaves = {name: leaf(seed + offset, 5) for offset, name in enumerate("abc")}
    first, _, third = torch.stack([*leaves.values()]).sin().unbind(0)
    return Scene((first * third.cos()).sum(), leaves)


def made_anew(seed: int) -> Scene:
    """After a write to its base a view's node is made anew, by the operation that uses it: it is younger than that."""
    x = leaf(seed, 3, 2)
    base = x * 0.5
    view = base[0]
    base.mul_(3)
    return Scene(torch.cat([base.sin(), view[None]]).sum(), {"x": x})


def second_output(seed: int) -> Scene:
    """The loss itself is the second output of a node with three."""
    x = leaf(seed, 3)
    return Scene(x.exp().unbind(0)[1], {"x": x})


def leaf_as_loss(seed: int) -> Scene:
    """Of float64: nothing behind it would convert a gradient that begins as float32."""
    x = leaf(seed, dtype=torch.float64)
    return Scene(x, {"x": x})


def trial(make: Callable[[int], Trial]) -> Callable[[int], Scene]:
    """Turn a tiny model into a scene."""

    def build(seed: int) -> Scene:
        made = make(seed)
        return Scene(made.loss(), dict(made.model.named_parameters()))

    return build


YOUNGER = "a view of what was written to"
SCENES: dict[str, Callable[[int], Scene]] = {
    "a leaf as the loss": leaf_as_loss,
    "a fork, long branch first": long_then_short,
    "a fork, short branch first": short_then_long,
    "a thousand paths": many_paths,
    "a weight used three times": shared_leaf,
    "one gradient for two inputs": handed_on_twice,
    "one gradient for two results": handed_on_early,
    "one gradient for two results, older": handed_on_late,
    "one gradient for two leaves": handed_on_to_leaves,
    "asked before about another result": two_results,
    "x * x": times_itself,
    "h * h": result_times_itself,
    "x * x and more": times_itself_and_more,
    "None for one input": nothing_for_one_input,
    "broadcasting": broadcasting,
    "broadcasting a result": broadcasting_a_result,
    "float32 and float64": two_dtypes,
    "an output that nobody used": unused_output,
    "a second output as the loss": second_output,
    "an MLP": trial(mlp),
    "a conv net": trial(conv_net),
    "an LSTM": trial(lstm),
    "a Transformer layer": trial(transformer),
}

# For the order alone: who runs nodes by their numbers is told there.
OF_ORDER = {**SCENES, YOUNGER: made_anew}
