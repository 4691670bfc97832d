"""Images and codes that are to be found by a gradient, while the optimizer holds the network that looks at them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.book import Slot, Trainer
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass
from course_utils.audit.source import assigned, source_at, tree_of
from course_utils.explain.source import called, names_of

_PASSES, _SHARE = 3, 0.9
# What is called so is what a training is to find, and no data.
_FOUND = re.compile(
    r"^((input|generated|gen|output|result|opt|target|style|stylized|init|best|synth\w*|adv)_?)?"
    r"(img|image|picture|pixels|canvas|patch)$|"
    r"^(generated|synthesized|stylized|pastiche|dream|texture|z|z_?(opt|hat)|latents?|latent_(code|vector|z)|z_latent|"
    r"w_latent|style_code|code|delta|perturbation|pert|trigger|(soft_)?prompt|prompt_embed\w*|x_opt|x_hat|x_inv)$",
    re.I,
)


class LearntInputs(Check):
    """Leaves of no model that each pass reaches, and that stay as they were."""

    codes: ClassVar = ("input-not-held",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes = 0

    def pass_ended(self, event: Pass) -> None:
        self._passes += event.accumulate

    def found(self) -> Iterator[Found]:
        trainers = [it for it in self.book.trainers.values() if it.steps >= _PASSES]
        if len(trainers) != 1 or trainers[0].key == 0 or not trainers[0].slots:
            return
        trainer = trainers[0]
        held = self.book.held()
        left = [
            slot
            for slot in self.book.live()
            if slot.owner is None and slot.key not in held and not slot.is_parameter and not slot.is_frozen()
            and slot.shape and slot.received >= max(_PASSES, _SHARE * self._passes) and not slot.has_moved()
        ]  # fmt: skip
        if (
            len(left) == 1
            and all(it.owner is not None for it in trainer.slots)
            and self._is_to_be_found(left[0], trainer)
        ):
            yield self._told(left[0], trainer)

    def _is_to_be_found(self, slot: Slot, trainer: Trainer) -> bool:
        """Say whether nothing reads the leaf's gradient, and a name, or a frozen network, tells what it is."""
        made, name = trainer.made, slot.name
        if made is None or not name:
            return False
        begun = assigned(made, name)
        if begun is None or "requires_grad" not in source_at(begun):
            return False
        known = all(it.is_frozen() for it in trainer.slots) or _FOUND.match(name.rpartition(".")[2]) is not None
        tree = tree_of(made.file)
        return known and not any(_reads(node, name) for node in (ast.walk(tree) if tree else ()))

    def _told(self, slot: Slot, trainer: Trainer) -> Found:
        optimizer, name = trainer.ref(), trainer.name or "optimizer"
        kind = type(optimizer).__name__ if optimizer is not None else "Adam"
        return self.say(
            "input-not-held",
            trainer.made,
            f"{name} holds the network, and not {slot.name}, which is to be found",
            f"{slot.name} asks for a gradient, got one in {slot.received} passes, and kept its first values: nothing "
            f"moves it. What {name} holds are the weights of the network that it is given to.",
            f"{name} = torch.optim.{kind}([{slot.name}], ...)  # and requires_grad_(False) for the network",
            certain=False,
            times=trainer.steps,
            about={slot.key, trainer.key, *(it.key for it in trainer.slots)},
            names=(slot.name,),
        )


def _reads(node: ast.AST, name: str) -> bool:
    """Say whether something takes the gradient by a name, or recomputes what stands behind it."""
    if isinstance(node, ast.Attribute) and node.attr == "grad" and ast.unparse(node.value) == name:
        return True
    return called(node) in ("grad", "checkpoint", "hessian", "jacobian") and name in names_of(node)
