"""Kinds of a sixth round: what a card must not say of them is what another cause of the same message would be."""

import torch
from torch import nn

from tests.explain.provoked import case


@case(
    "shared-trunk",
    "tensors in `losses` share",
    "retain_graph=one != losses[-1]",
    "all passes but the last",
    certain=False,
)
def retained_by_value():
    def gradients(losses, ps):
        return [torch.autograd.grad(one, ps, retain_graph=one != losses[-1]) for one in losses]  # second pass here

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


@case("input-without-grad", "x = x.detach().requires_grad_()")
def rows_by_what_a_function_was_given():
    def jacobian(f, x):
        y = f(x)
        return [torch.autograd.grad(row, x, retain_graph=True) for row in y]  # raised here

    jacobian(torch.exp, torch.ones(3))


@case("input-without-grad", "`a`, `b` do not require", "a = a.detach()", "b = b.detach()")
def two_that_a_function_was_given():
    def both(a, b, v):
        return torch.autograd.grad(a @ b, (a, b), v)  # raised here

    both(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))


@case("input-without-grad", "x.requires_grad_()  # before it is used: where `y.sum()` is computed")
def function_given_the_output_as_well():
    def slope(y, x):
        return torch.autograd.grad(y.sum(), x)  # raised here

    x = torch.ones(3)
    slope(nn.Linear(3, 1)(x), x)


@case("input-without-grad", "`ps[0]`, `ps[1]` do not", "[it for it in ps if it.requires_grad]", "if it is to learn")
def frozen_parameters_asked_about():
    def gradients(loss, model):
        ps = tuple(model.parameters())
        return torch.autograd.grad(loss, ps)  # raised here

    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    gradients(model(torch.ones(1, 2)).sum(), model)


@case("input-without-grad", "`a`, `b` do not", "a.requires_grad_()  # before it is used\nb.requires_grad_()")
def all_frozen_parameters_asked_about():
    a, b = nn.Linear(2, 1, bias=False).requires_grad_(False).weight, nn.Parameter(torch.ones(1), requires_grad=False)
    torch.autograd.grad((a * b).sum(), (a, b))  # raised here


@case("no-graph-second-order", "`(g * v).sum()` comes from a gradient that was recorded", certain=False)
def product_with_a_constant_gradient():
    z, v = torch.ones(3, requires_grad=True), torch.ones(3)
    (g,) = torch.autograd.grad(3 * z.sum(), z, create_graph=True)  # computed here
    torch.autograd.grad((g * v).sum(), z)  # raised here


@case("no-graph-second-order", "`g[0]` is a gradient without a graph")
def element_of_a_gradient():
    x = torch.ones(3, requires_grad=True)
    g = torch.autograd.grad(x.exp().sum(), x)[0]  # computed here
    torch.autograd.grad(g[0], x)  # raised here


@case("not-in-graph-second-order", "`y.sum()` comes from a gradient", "Or the path was cut", certain=False)
def slope_of_a_layer():
    line, z = nn.Linear(3, 1), torch.ones(3, requires_grad=True)
    y = line(z)
    for _ in range(2):
        (y,) = torch.autograd.grad(y.sum(), z, create_graph=True)  # raised here


@case("not-in-graph-second-order", "`x` comes from a gradient", "linear in `a`", certain=False)
def rows_of_a_hessian_with_a_linear_part():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    ps = [a, b]
    g = torch.cat([it.reshape(-1) for it in torch.autograd.grad((a + b.exp()).sum(), ps, create_graph=True)])
    for x in g:
        torch.autograd.grad(x, ps, retain_graph=True)  # raised here


@case("numpy-of-graph", "What is computed from `v` is recorded")
def leaf_to_numpy():
    v = torch.ones(3, requires_grad=True)
    v.numpy()  # raised here
