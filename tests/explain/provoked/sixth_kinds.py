"""Kinds of a sixth round: what a card must not say of them is what another cause of the same message would be."""

import torch

from tests.explain.provoked import case


@case(
    "shared-trunk",
    "tensors in `losses` share",
    "retain_graph=one != losses[-1]",
    "all passes but the last",
    certain=False,
)
def retained_by_value():
    def gradients(losses, parameters):
        return [
            torch.autograd.grad(one, parameters, retain_graph=one != losses[-1]) for one in losses
        ]  # second pass here

    w = torch.ones(3, requires_grad=True)
    h = w.exp()
    gradients([h.sum(), h.prod(), h.sum()], [w])


@case("shared-trunk", "share `h`", "one.backward(retain_graph=True)", certain=False)
def heads_in_a_loop():
    w = torch.ones(3, requires_grad=True)
    h = w.exp()
    losses = [h.sum(), h.prod()]
    for one in losses:
        one.backward()  # second pass here


@case("shared-trunk", "one.backward(retain_graph=True)", remembered=True)
def heads_in_a_remembered_loop():
    w = torch.ones(3, requires_grad=True)
    h = w.exp()  # computed here, once
    losses = [h.sum(), h.prod()]
    for one in losses:
        one.backward()  # first pass here, second pass here


@case("shared-trunk", "tensors in `losses` share", "compute each loss anew", certain=False)
def heads_with_steps_between():
    def play(losses, optimizers):
        for one, optimizer in zip(losses, optimizers, strict=True):
            one.backward()  # second pass here
            optimizer.step()

    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    h = (w * v).exp()
    play([h.sum(), h.prod()], [torch.optim.SGD([it], lr=0.1) for it in (w, v)])


@case("carried-state", "`losses` may hold graphs that an earlier pass has used up", "a common part", certain=False)
def one_of_a_list_and_then_all():
    def learn(losses):
        first = losses[0]
        first.backward()
        sum(losses).backward()  # second pass here

    w = torch.ones(3, requires_grad=True)
    h = w.exp()
    learn([h.sum(), h.prod()])
