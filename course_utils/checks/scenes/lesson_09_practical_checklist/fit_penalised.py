"""What an answer to `fit_penalised` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import Optimizer, network, sgd


def penalised(case: Case) -> tuple[nn.Sequential, Optimizer]:
    """Return the model and an optimizer for what it trains; with `holds all`, for its frozen parameters as well.

    Where the case says `old`, these have a gradient from before they were frozen. There may be weight decay.

    With `oddities` two parameters hold the same numbers, of which one is no part of the result. Otherwise the last
    bias is all zeros, as a fresh one may be.
    """
    model = network(case)
    last = model.get_parameter("2.0.0.bias")
    with torch.no_grad():
        if case.given.get("oddities"):
            model.get_parameter("spare").copy_(last)
        else:
            last.zero_()
    optimizer = sgd(model, momentum=case.given.get("momentum", 0.0), decay=case.given.get("decay", 0.0))
    if case.given.get("holds all"):
        frozen = [it for it in model.parameters() if not it.requires_grad]
        for parameter in frozen if case.given.get("old") else ():
            parameter.grad = torch.ones_like(parameter)
        optimizer.add_param_group({"params": frozen})
    return model, optimizer
