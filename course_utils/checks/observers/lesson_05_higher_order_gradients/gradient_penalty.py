"""Running an answer to `gradient_penalty`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_05_higher_order_gradients.results import recorded, state, touched
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import changed, facts_about
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.scenes.lesson_05_higher_order_gradients.gradient_penalty import critic_of


def observe(answer: Answer, case: Case) -> Observation:
    critic = critic_of(case)
    real, fake, mix = (case.given[name].tensor() for name in ("real", "fake", "mix"))
    if case.given["leaf"]:  # the samples themselves are being learned
        maker = made = fake.clone().requires_grad_()
    else:
        maker = torch.ones((), dtype=torch.float64, requires_grad=True)  # stands for the generator
        made = fake * maker
    tensors = {"real": real, "fake": made, "mix": mix}
    parameters = list(critic.parameters())
    parameters[0].grad = torch.full_like(parameters[0], 7.0)
    before = [state(parameter) for parameter in parameters]
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    calls: list[None] = []
    notice(critic, lambda module, given, result: calls.append(None), name="calls")
    traced = facts_about(critic)
    with every_pass() as passes:
        returned = answer(critic, real, made, mix)
    left = changed(traced, critic)
    seen: Observation = {
        "returned": plain(returned),
        "recorded": recorded(returned) and returned.grad_fn is not None,  # a leaf leads nowhere
        "calls": len(calls),
        "passes": len(passes),
        "recorded passes": sum(it.recorded for it in passes),
        "touched": touched(before, parameters),
        "left": left,
        "maker": maker.grad is not None,
        "changed": [name for name, tensor in tensors.items() if plain(tensor) != case.given[name]],
        "requiring": [name for name in tensors if tensors[name].requires_grad is not (name == "fake")],
        "held": [name for name, tensor in tensors.items() if tensor.is_leaf and tensor.grad is not None],
        "gradients": None,
    }
    if seen["recorded"] and returned.numel() == 1:
        asked = [*learning, maker] if maker.requires_grad else learning  # an answer may have taken that away
        try:
            gradients = torch.autograd.grad(returned, asked, torch.ones_like(returned), allow_unused=True)
        except RuntimeError as error:
            seen["gradients"] = str(error)
        else:
            seen["maker"] = seen["maker"] or any(it is not None for it in gradients[len(learning) :])
            seen["gradients"] = [plain(gradient) for gradient in gradients[: len(learning)]]
    return seen
