"""Right loops with attributes, keys, names and bare lines of their own."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import right


@right
def rate_kept_on_the_optimizer_for_a_rule_of_ones_own():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.lr = 0.1
    for step in range(6):
        for group in optimizer.param_groups:
            group["lr"] = optimizer.lr / (1 + step)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def groups_with_names_and_scales():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.AdamW(
        [
            {"params": model[0].parameters(), "name": "body", "lr_scale": 0.1, "decay": 0.9},
            {"params": model[2].parameters(), "name": "head", "lr_scale": 1.0, "decay": 0.8},
        ],
        lr=0.01,
    )
    for step in range(6):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * group["lr_scale"] * group["decay"] ** step
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def layers_that_say_themselves_whether_they_train():
    class Block(nn.Module):
        def __init__(self, trainable):
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.trainable = trainable
            self.rate = 0.1

        def forward(self, x):
            return F.dropout(self.inner(x), self.rate, self.training)

    x, y = blobs()
    model = nn.Sequential(Block(False), Block(True), nn.Linear(4, 3))
    for part in model.children():
        part.requires_grad_(getattr(part, "trainable", True))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def dropout_that_rises():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.0), nn.BatchNorm1d(8), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        model[1].p = 0.05 * step
        model[2].momentum = 0.1 / (1 + step)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def frozen_by_names_that_fit():
    x, y = blobs()
    model = Dropping()
    for name, p in model.named_parameters():
        if name.startswith(("inner", "norm")):
            p.requires_grad = False
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
    for _ in range(6):
        model.train()
        model.norm.eval()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def all_but_the_last_layer_frozen_by_name():
    x, y = blobs()
    model = mlp()
    for name, p in model.named_parameters():
        if not name.startswith("2"):
            p.requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@right
def copies_that_ask_for_no_gradient():
    x, y = blobs()
    model = mlp()
    average = {name: p.detach().clone().requires_grad_(False) for name, p in model.named_parameters()}
    x.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for name, p in model.named_parameters():
            average[name].lerp_(p.detach(), 0.1)


@right
def parts_of_a_model_kept_in_training():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model.train()
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        model.drop.training = True
        with torch.no_grad():
            print(torch.stack([model(x) for _ in range(3)]).std(0).mean().item())


@right
def bare_lines_that_do_something():
    x, y = lines()
    model = mlp(out=1)
    model.double()
    model.float()
    model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.grad.clamp_(-1, 1)
            torch.mul(p.grad, 0.5, out=p.grad)
        optimizer.step()
        with torch.no_grad():
            model[0].weight.clamp_(-1, 1)
        loss.item()


@right
def input_doubled_in_place_and_said():
    class Doubling(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x, y = lines()
    first, last = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.01)
    for _ in range(6):
        h = first(x)
        Doubling.apply(h)
        optimizer.zero_grad()
        F.mse_loss(last(h), y).backward()
        optimizer.step()


@right
def memory_of_an_input_used_again_by_its_only_reader():
    class Rectified(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.clone()
            out.clamp_(min=0)
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, grad):
            return grad * (ctx.saved_tensors[0] > 0)

    x, y = lines()
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        F.mse_loss(model[1](Rectified.apply(model[0](x))), y).backward()
        optimizer.step()
