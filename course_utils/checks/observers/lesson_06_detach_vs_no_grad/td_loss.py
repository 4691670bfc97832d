"""Running an answer to `td_loss`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import (
    Runs,
    gradients_in,
    gradients_of,
    hooks_in,
    is_result,
    modes_as_found,
    parameters_as_found,
)
from course_utils.checks.observers.traces import changes
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.td_loss import q_networks


def observe(answer: Answer, case: Case) -> Observation:
    network, target_network = q_networks(case)
    live, old = Runs(network), Runs(target_network, "old runs")
    names = ("states", "actions", "rewards", "next_states", "done")
    batch = tuple(case.given[name].tensor() for name in names)
    networks = {"network": network, "target_network": target_network}
    before, modes = parameters_as_found(**networks), modes_as_found(**networks)
    graded = gradients_in(network), gradients_in(target_network)
    hooks = hooks_in(network, target_network)
    given = [Array.of(tensor) for tensor in batch]
    loss = answer(network, target_network, batch, case.given["discount"])
    seen: Observation = {
        "returned": plain(loss),
        "graph": is_result(loss),
        "gradients": None,
        "old gradients": None,
        "pulled": False,
        "touched": changes(before, parameters_as_found(**networks)),
        "modes": changes(modes, modes_as_found(**networks)),
        "hooks": hooks_in(network, target_network) == hooks,
        "batch": [Array.of(tensor) for tensor in batch] == given,
        "graded": (gradients_in(network), gradients_in(target_network)) != graded,
    }
    if type(loss) is torch.Tensor and loss.requires_grad and loss.numel() == 1 and not seen["touched"]:
        old_leaves = [parameter for parameter in target_network.parameters() if parameter.requires_grad]
        every = [*network.parameters(), *old_leaves]
        found = gradients_of(loss, every, torch.ones_like(loss))
        half = len(every) - len(old_leaves)
        if found is not None:
            seen["gradients"] = found[:half]
            seen["old gradients"] = any(gradient is not None for gradient in found[half:])
            seen["pulled"] = any(gradient is not None and bool(gradient.tensor().any()) for gradient in found[half:])
    # A backward of the answer's own may run them once more.
    return {**seen, "recorded": any(old.live), "runs": len(live.live), "old runs": len(old.live)}
