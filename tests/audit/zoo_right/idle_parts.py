"""Right loops whose optimizers hold what asks for no gradient, on purpose or for a while."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import blobs, mlp
from tests.audit.registry import right
from tests.audit.zoo_faults.idle_parts import Bag, trained


@right
def table_frozen_and_said_so():
    model = Bag(nn.Embedding.from_pretrained(torch.randn(20, 6), freeze=True))
    groups = [{"params": model.table.parameters(), "lr": 1e-3}, {"params": model.head.parameters()}]
    trained(model, torch.optim.Adam(groups, lr=0.01))


@right
def a_group_for_each_parameter():
    model = Bag(nn.Embedding.from_pretrained(torch.randn(20, 6)))
    groups = [{"params": [p], "lr": 0.01 * 0.9**at} for at, p in enumerate(model.parameters())]
    trained(model, torch.optim.Adam(groups))


@right
def one_list_with_the_frozen_table_among_them():
    model = Bag(nn.Embedding.from_pretrained(torch.randn(20, 6)))
    trained(model, torch.optim.Adam(list(model.parameters()), lr=0.01))


@right
def groups_with_and_without_decay():
    model = Bag(nn.Embedding.from_pretrained(torch.randn(20, 6)))
    decayed = [p for name, p in model.named_parameters() if name == "table.weight"]
    rest = [p for name, p in model.named_parameters() if name != "table.weight"]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=0.01
    )
    trained(model, optimizer)


@right
def body_frozen_by_a_line_and_held_in_a_group():
    x, y = blobs()
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(
        [{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters(), "lr": 0.01}]
    )
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def table_thawed_after_the_head_is_warm():
    model = Bag(nn.Embedding.from_pretrained(torch.randn(20, 6)))
    groups = [{"params": model.table.parameters(), "lr": 1e-3}, {"params": model.head.parameters()}]
    optimizer = torch.optim.Adam(groups, lr=0.01)
    trained(model, optimizer)
    model.table.requires_grad_(True)
    trained(model, optimizer)


@right
def centres_moved_by_hand_beside_the_optimizer():
    x, y = blobs()
    model, centres = mlp(), torch.zeros(3, 3)
    optimizer = torch.optim.SGD([*model.parameters(), centres], lr=0.05)
    for _ in range(5):
        out = model(x)
        loss = F.cross_entropy(out, y) + (out - centres[y]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        centres.index_add_(0, y, 0.1 * (out.detach() - centres[y]))
