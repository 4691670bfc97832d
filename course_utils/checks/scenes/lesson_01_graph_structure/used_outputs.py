"""What an answer to `used_outputs` is tried on."""

from __future__ import annotations

import torch

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_01_graph_structure.graphs import tracked_numbers


def outputs_of(case: Case) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Return the tensor of a case, and all outputs of the operation that is asked about."""
    x = tracked_numbers(12)
    parts = torch.split(x, case.given["sizes"]) if "sizes" in case.given else x.unbind()
    uses = [parts[i].sum() for i in case.given["used"]]
    tensor: torch.Tensor
    match case.given["how"]:
        case "deep":
            tensor = torch.stack([use.exp().sin() * (position + 2) for position, use in enumerate(uses)]).prod()
        case "side by side":  # one operation takes several outputs, and another one's result between them
            first, second, third = (parts[i] for i in case.given["used"])
            tensor = torch.stack([first, second.exp(), third]).prod()
        case "doublings":
            tensor = sum(uses, torch.zeros(()))
            for _ in range(40):
                tensor = tensor + tensor
        case "chain":
            tensor = sum(uses, torch.zeros(()))
            for _ in range(3_500):
                tensor = tensor.neg()
        case "no graph":
            tensor = parts[0].detach() * 2
        case "itself":
            tensor = parts[case.given["used"][0]]
        case "parts of a part":
            tensor = torch.split(parts[case.given["used"][0]], [2, 4])[1]
        case "detached":
            tensor = uses[0] * parts[0].detach().sum() + x.mean()
        case "elsewhere":
            tensor = x.unbind()[2] * 3
        case "two of one kind":
            tensor = uses[0] * x.unbind()[0]
    return tensor, parts


def earlier_use(case: Case, parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return another tensor that uses outputs of the same operation: an answer is asked about it before."""
    return torch.stack([parts[i].sum() for i in case.given["before"]]).sum()
