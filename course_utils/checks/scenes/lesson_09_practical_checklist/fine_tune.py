"""What an answer to `fine_tune` is tried on."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Case
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, Optimizer, double, new_head
from course_utils.checks.scenes.numbers import seeded
from course_utils.checks.scenes.zoo import deep


def backbone_and_head(case: Case) -> tuple[nn.Sequential, nn.Linear, Optimizer]:
    """Return a pretrained backbone, a new head, and one optimizer for both, which has stepped before.

    Gradients of an earlier pass are left.
    Where the case says so, a bias of each was frozen after that, and the optimizer holds the two all the same; that of
    the head without momentum and decay: zeros for its gradient move it as little as none. Otherwise the optimizer has
    both parts in one group.
    """
    seed = case.given["seed"]
    backbone = nn.Sequential(nn.Dropout(0.3), deep(nn.Linear(4, 5)), nn.BatchNorm1d(5), nn.Tanh()).double()
    seeded(backbone, seed)
    head = new_head(case)
    head.bias.requires_grad_(not case.given["frozen"])
    for module in (backbone, head):
        for offset, parameter in enumerate(module.parameters()):
            parameter.grad = double(seed + 70 + offset, *parameter.shape)
    with torch.no_grad():
        for offset, name in enumerate(("running_mean", "running_var")):
            backbone[2].get_buffer(name).copy_(double(seed + 90 + offset, 5).abs())
    groups = [{"params": [it for it in module.parameters() if it.requires_grad]} for module in (backbone, head)]
    held = [it for group in groups for it in group["params"]]
    optimizer = torch.optim.SGD(groups if case.given["frozen"] else held, lr=RATE, momentum=0.9, weight_decay=0.1)
    if case.given["frozen"]:
        backbone.get_parameter("1.0.0.bias").requires_grad_(False)
        optimizer.add_param_group({"params": [head.bias], "momentum": 0.0, "weight_decay": 0.0})
    for offset, parameter in enumerate(held):
        optimizer.state[parameter]["momentum_buffer"] = double(seed + 110 + offset, *parameter.shape)
    return backbone, head, optimizer
