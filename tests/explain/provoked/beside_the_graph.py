"""Gradients asked for what is beside the graph: parts and copies made too late, parts of a model that are not used."""

import torch
from torch import nn

from tests.explain.provoked import case


@case("not-in-graph", "`t` is a part of `points`", "[0][:, 1:2]", "make t first")
def slice_made_after_the_network():
    points = torch.rand(4, 2, requires_grad=True)
    u = nn.Linear(2, 1)(points)
    t = points[:, 1:2]  # made here
    torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)  # raised here


@case("not-in-graph", "`column` is a part of `states`")
def column_of_an_intermediate_result():
    states = torch.rand(3, 2, requires_grad=True).exp()
    column = states[:, [0]].clone()  # made here
    energy = states.pow(2).sum()
    torch.autograd.grad(energy, [column])  # raised here


@case("not-in-graph", "`x` is a part of `points`")
def slice_asked_of_a_gradient():
    points = torch.rand(4, 2, requires_grad=True)
    u = points.prod(1).sum()
    (slope,) = torch.autograd.grad(u, points, create_graph=True)
    x = points[:, :1]  # made here
    torch.autograd.grad(slope.sum(), x)  # raised here


@case("not-in-graph", "No recorded path leads from `u` to `t`", certain=False)
def only_another_slice_is_used():
    points = torch.rand(4, 2, requires_grad=True)
    x, t = points[:, :1], points[:, 1:]
    u = x.pow(2).sum()
    torch.autograd.grad(u, t)  # raised here


@case("not-in-graph", "No recorded path leads from `u` to `b`", certain=False)
def only_the_other_half_is_used():
    a, b = torch.rand(4, requires_grad=True).exp().chunk(2)
    u = a.sum()
    torch.autograd.grad(u, b)  # raised here


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(2, 2)
        self.near = nn.Linear(2, 1)
        self.unvisited_head = nn.Sequential(nn.Linear(2, 2), nn.ReLU())  # made here

    def forward(self, x):
        return self.near(self.trunk(x))


@case(
    "not-in-graph",
    "`loss` does not use `twins.unvisited_head`",
    "`twins.unvisited_head[0].weight`",
    "allow_unused=True",
)
def head_that_forward_never_reads():
    twins = TwoHeads()
    loss = twins(torch.ones(1, 2)).sum()
    weights = list(twins.parameters())
    torch.autograd.grad(loss, weights)  # raised here


@case("not-in-graph", "nor is any parameter of `pair.critic`", certain=False)
def part_whose_use_the_lines_do_not_show():
    pair = nn.ModuleDict({"actor": nn.Linear(2, 1), "critic": nn.Linear(2, 1)})
    gain = pair["actor"](torch.ones(1, 2)).sum()
    torch.autograd.grad(gain, pair.parameters())  # raised here


@case("not-in-graph", "`gate.bias` is not in the graph", certain=False)
def one_parameter_of_a_part():
    gate = nn.Linear(2, 1)
    size = gate.weight.pow(2).sum()
    torch.autograd.grad(size, gate.parameters())  # raised here
