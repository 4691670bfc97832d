"""Faulty loops: earlier weights that were kept by reference, and updates that nobody takes."""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value
from torch.nn import functional as F

from tests.audit.parts import blobs, lines, mlp
from tests.audit.registry import fault


def inner(model, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x, y = lines()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


@fault("state-is-alias")
def reptile_from_a_state_that_moves():
    model = mlp(out=1)
    for _ in range(4):
        start = dict(model.state_dict())  # <- here
        inner(model)
        end = model.state_dict()
        with torch.no_grad():
            moved = {name: torch.lerp(start[name], end[name], 0.2) for name in start}
        model.load_state_dict(moved)


@fault("copy-is-itself", "zero-gradient", "constant-term")
def anchor_that_is_the_weights():
    model = mlp()
    anchor = dict(model.named_parameters())  # <- here
    strength = 0.1
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        x, y = blobs()
        optimizer.zero_grad()
        penalty = sum(((p - anchor[name]) ** 2).sum() for name, p in model.named_parameters())
        (F.cross_entropy(model(x), y) + strength * penalty).backward()
        optimizer.step()


@fault("copy-is-itself")
def distance_from_detached_weights():
    model = mlp(out=1)
    kept = [p.detach() for p in model.parameters()]  # <- here
    far = []
    for _ in range(4):
        inner(model)
        with torch.no_grad():
            far.append(sum(F.mse_loss(now, then) for now, then in zip(model.parameters(), kept, strict=True)))


@fault("no-effect")
def momentum_step_that_nobody_takes():
    model = mlp()
    params = {name: p.detach().clone() for name, p in model.named_parameters()}
    speed = {name: torch.zeros_like(p) for name, p in params.items()}

    def loss_of(params, x, y):
        return F.cross_entropy(functional_call(model, params, (x,)), y)

    def move(params, speed, grads, rate=0.1):
        speed = {name: 0.9 * speed[name] + grads[name] for name in params}
        return {name: params[name] - rate * speed[name] for name in params}, speed

    for _ in range(6):
        slopes, _ = grad_and_value(loss_of)(params, *blobs())
        move(params, speed, slopes)  # <- here
    functional_call(model, params, blobs()[:1]).argmax(1)


@fault("no-effect")
def list_of_new_weights_dropped_in_a_function():
    model = nn.Linear(4, 3)
    weights = [p.detach().clone() for p in model.parameters()]

    def loss_of(weights, x, y):
        return F.cross_entropy(functional_call(model, dict(zip(("weight", "bias"), weights, strict=True)), (x,)), y)

    def descend(old, grads, rate):
        return [w - rate * g for w, g in zip(old, grads, strict=True)]

    def train(weights):
        for _ in range(6):
            grads = grad(loss_of)(weights, *blobs())
            descend(weights, grads, 0.1)  # <- here
        return weights

    train(weights)
    functional_call(model, dict(zip(("weight", "bias"), weights, strict=True)), blobs()[:1])


@fault("never-reached")
def inner_steps_of_a_dict_cut_off():
    meta = {"w": torch.randn(4, 1, requires_grad=True), "b": torch.zeros(1, requires_grad=True)}
    optimizer = torch.optim.Adam(meta.values(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        fast = dict(meta)
        for _ in range(2):
            x, y = lines()
            slopes = torch.autograd.grad(F.mse_loss(x @ fast["w"] + fast["b"], y), list(fast.values()))
            moved = (w - 0.1 * slope for w, slope in zip(fast.values(), slopes, strict=True))
            fast = {name: w.detach().requires_grad_() for name, w in zip(fast, moved, strict=True)}  # <- here
        x, y = lines()
        F.mse_loss(x @ fast["w"] + fast["b"], y).backward()
        optimizer.step()


def rounds(model, optimizer, steps=4):
    for _ in range(steps):
        x, y = blobs()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("other-tensors")
def model_made_anew_after_its_optimizer():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rounds(model, optimizer)
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    model = mlp()  # <- here
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    rounds(model, optimizer)


@fault("other-tensors")
def model_put_back_as_a_copy():
    model = mlp()
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    best = copy.deepcopy(model)
    rounds(model, sgd)
    model = copy.deepcopy(best)  # <- here
    for _ in range(5):
        x, y = blobs()
        loss = F.cross_entropy(model(x), y)
        sgd.zero_grad(set_to_none=False)
        model.zero_grad()
        loss.backward()
        sgd.step()
