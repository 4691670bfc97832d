"""Errors of graphs that were used up, or kept."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.explain.provoked import case


@case("same-loss-twice", "loss")
def same_loss_twice():
    w = torch.ones(3, requires_grad=True)
    loss = (w**2).sum()
    loss.backward()  # first pass here
    loss.backward()  # second pass here


@case("carried-state", "h = h.detach()", certain=False)
def carried_state():
    cell = nn.RNNCell(2, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    h = torch.zeros(1, 3)
    for _ in range(3):
        h = cell(torch.ones(1, 2), h)  # carried over here
        loss = h.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()  # second pass here
        optimizer.step()


@case("shared-trunk", "features", "(first + second)", certain=False)
def shared_trunk():
    trunk, a, b = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    features = torch.tanh(trunk(torch.ones(2, 3)))  # computed here, once
    first, second = a(features).sum(), b(features).sum()
    first.backward()  # first pass here
    second.backward()  # second pass here


@case("checkpoint-recomputed", certain=False)
def checkpoint_that_recomputes_something_else():
    count = [0]

    def block(x):
        count[0] += 1  # changes between the runs
        return torch.sin(x) if count[0] == 1 else x * 2

    x = torch.ones(3, requires_grad=True)
    y = checkpoint(block, x, use_reentrant=False).sum()
    y.backward()  # raised here


@case("checkpoint-recomputed", certain=False)
def checkpoint_that_recomputes_other_shapes():
    sizes = iter([3, 4])

    def block(x):
        return torch.sin(x[: next(sizes)]).sum()

    x = torch.ones(5, requires_grad=True)
    y = checkpoint(block, x, use_reentrant=False)
    y.backward()  # raised here


@case("checkpoint-recomputed", "reads `start`", "lambda t, start=start: net[start:start + 2](t)", certain=False)
def segments_that_read_the_loop_late():
    net = nn.Sequential(*(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(5)))
    h = torch.ones(2, 3, requires_grad=True)
    for start in range(0, 5, 2):
        h = checkpoint(lambda t: net[start : start + 2](t), h, use_reentrant=False)
    h.sum().backward()  # raised here


@case("checkpoint-recomputed", "reads `first` and `last`", "def part(t, first=first, last=last):", certain=False)
def functions_that_read_the_loop_late():
    net = nn.Sequential(*(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(5)))
    h = torch.ones(2, 3, requires_grad=True)
    for first, last in ((0, 3), (3, 5)):

        def part(t):
            return net[first:last](t)

        h = checkpoint(part, h, use_reentrant=False)
    h.sum().backward()  # raised here


@case("checkpoint-reentrant", "use_reentrant", warns=True)
def checkpoint_without_use_reentrant():
    layer = nn.Linear(3, 3)
    return checkpoint(layer, torch.ones(2, 3, requires_grad=True))


@case("checkpoint-inputs", "requires_grad", warns=True)
def checkpoint_of_inputs_without_grad():
    layer = nn.Linear(3, 3)
    return checkpoint(layer, torch.ones(2, 3), use_reentrant=True)


@case("checkpoint-grad", "use_reentrant=False")
def checkpoint_and_autograd_grad():
    layer = nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)
    y = checkpoint(layer, x, use_reentrant=True).sum()  # checkpointed here
    torch.autograd.grad(y, x)  # raised here


@case("same-loss-twice", "y")
def checkpointed_graph_twice():
    layer = nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)
    y = checkpoint(lambda x: layer(x).tanh(), x, use_reentrant=False).sum()
    y.backward()  # first pass here
    y.backward()  # second pass here


@case("deepcopy-non-leaf", "h")
def deepcopy_of_a_non_leaf():
    w = torch.ones(3, requires_grad=True)
    h = w * 2
    return copy.deepcopy(h)  # raised here


@case("deepcopy-non-leaf", "last_features", "model")
def deepcopy_of_a_model_that_keeps_a_tensor():
    model = nn.Linear(3, 3)
    model.last_features = model(torch.ones(1, 3))
    return copy.deepcopy(model)  # raised here


@case("reference-cycle", "create_graph", warns=True)
def backward_with_create_graph():
    w = torch.ones(3, requires_grad=True)
    (w**3).sum().backward(create_graph=True)


@case("in-place", "y", "exp")
def result_of_exp_written():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # saved here
    y += 1  # overwritten here
    y.sum().backward()  # needed here


@case("in-place", "mask", "*")
def factor_written():
    x, mask = torch.ones(3, requires_grad=True), torch.ones(3)
    y = x * mask  # saved here
    mask[0] = 0  # overwritten here
    y.sum().backward()  # needed here


@case("in-place-by-step", "step")
def step_between_forward_and_backward():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = model(torch.ones(2, 3))
    out.sum().backward(retain_graph=True)
    optimizer.step()  # overwritten here
    out.mean().backward()  # needed here


@case("in-place", "ReLU(inplace=True)", certain=False)
def inplace_relu_on_a_sigmoid():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(inplace=True))  # writes in place
    model(torch.ones(2, 3)).sum().backward()  # needed here


@case("leaf-in-place", "w", "no_grad")
def update_without_no_grad():
    w = torch.ones(3, requires_grad=True)
    w.pow(2).sum().backward()
    w -= 0.1 * w.grad  # raised here


@case("leaf-view-in-place", "w", "no_grad")
def element_of_a_leaf_written():
    w = torch.ones(3, requires_grad=True)
    w[0] = 5.0  # raised here


@case("leaf-in-place", "x")
def fill_of_a_leaf():
    x = torch.empty(3, requires_grad=True)
    x.fill_(2.0)  # raised here


@case("view-of-several-in-place", "a", "unbind")
def one_of_several_views_written():
    x = torch.ones(2, 3, requires_grad=True)
    a, b = (x * 2).unbind(0)
    a += b  # raised here


@case("view-of-several-in-place", "first")
def one_of_split_views_written():
    x = torch.ones(4, requires_grad=True)
    first, _ = torch.split(x * 2, 2)
    first.mul_(2)  # raised here


class _Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:2]

    @staticmethod
    def backward(ctx, grad):
        return torch.cat([grad, torch.zeros(1)])


@case("function-view-in-place", "half")
def view_made_by_a_function_written():
    x = torch.ones(3, requires_grad=True) * 1
    half = _Half.apply(x)
    half += 1  # raised here


@case("view-from-no-grad-in-place", "v", "no_grad")
def view_made_in_no_grad_written():
    x = torch.ones(3, requires_grad=True) * 1
    with torch.no_grad():  # switches recording off
        v = x[:2]
    v.mul_(torch.ones(2, requires_grad=True))  # raised here


@case("hooked-module-in-place", "out = out + 1")
def module_with_a_full_backward_hook_written():
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda module, gin, gout: None)  # hook put on here
    out = layer(torch.ones(2, 3))
    out += 1  # raised here


@case("expanded-in-place", "y", "clone")
def expanded_tensor_written():
    x = torch.ones(3)
    y = x.expand(2, 3)
    y.add_(1)  # raised here


@case("out-argument", "out=")
def out_of_a_tensor_with_grad():
    w = torch.ones(3, requires_grad=True)
    result = torch.empty(3)
    torch.mul(w, 2, out=result)  # raised here


@case("leaf-in-place", "a")
def leaf_moved_into_the_graph():
    a = torch.zeros(3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    with torch.enable_grad():
        a.copy_(b * 2)  # raised here


@case("in-place", "result")
def detached_result_written():
    x = torch.ones(3, requires_grad=True)
    result = torch.sigmoid(x)  # saved here
    shown = result.detach()
    shown *= 100  # overwritten here
    result.sum().backward()  # needed here


@case("graph-too-deep", "deep", certain=False)
def recursion_over_a_deep_graph():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y + 1

    def count(node):
        return 1 + sum(count(to) for to, _ in node.next_functions if to)  # raised here

    count(y.grad_fn)


@case("seed-missing", "loss", "none")
def loss_without_reduction():
    model = nn.Linear(3, 1)
    loss = F.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 1), reduction="none")
    loss.backward()  # raised here
