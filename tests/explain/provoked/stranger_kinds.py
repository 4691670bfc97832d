"""Kinds of mistakes that strangers made, in other code: what a card says of them is true, and its fix is code."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.explain.provoked import case


@case("no-graph-detach", "may have been", certain=False)
def frozen_model_beside_a_detached_target():
    frozen = nn.Linear(2, 1).requires_grad_(False)
    learner = nn.Linear(2, 1)
    goal = learner(torch.ones(3, 2)).detach()  # cut here
    gap = (frozen(torch.ones(3, 2)) - goal).abs().mean()
    gap.backward()  # raised here


@case("leaf-view-in-place", "`weights`", "leaf")
def row_of_a_leaf():
    weights = torch.ones(3, 2, requires_grad=True)
    row = weights[0]
    row.mul_(2)  # raised here


@case("numpy-of-graph", "`history` holds tensors")
def history_of_losses():
    import numpy as np

    w = torch.ones(2, requires_grad=True)
    history = [(w * k).sum() for k in range(3)]
    return np.array(history)  # raised here


@case("seed-missing", "no grad_outputs")
def grad_of_several():
    t = torch.ones(3, requires_grad=True)
    curve = t.cos()
    torch.autograd.grad(curve, t)  # raised here


@case("gradcheck-precision", "float64", certain=False)
def gradcheck_in_single_precision():
    torch.manual_seed(0)
    point = torch.rand(4, requires_grad=True)
    torch.autograd.gradcheck(lambda v: (v * 1000).sin().sum(), (point,))  # raised here


@case("vmap-in-place", "`bank`")
def copy_into_a_captured_tensor():
    bank = torch.zeros(2)

    def one(v):
        bank.copy_(v)  # raised here
        return bank.sum()

    return torch.func.vmap(one)(torch.ones(4, 2))


@case("vmap-branch", "torch.where")
def mask_inside_vmap():
    def positive(v):
        return v[v > 0].sum()  # raised here

    return torch.func.vmap(positive)(torch.ones(4, 2))


@case("vmap-in-place", "batch norm")
def batch_norm_inside_vmap():
    norm = nn.BatchNorm1d(2)

    def one(v):
        return norm(v)  # raised here

    return torch.func.vmap(one)(torch.ones(4, 3, 2))


@case("seed-missing", "jacrev")
def func_grad_of_a_vector():
    return torch.func.grad(lambda v: v.sin())(torch.ones(3))  # raised here


@case("dtype-mismatch", "float64 was written into float32")
def doubles_put_by_index():
    table, new = torch.zeros(4), torch.ones(2, dtype=torch.float64)
    table[torch.tensor([0, 2])] = new  # raised here


@case("state-keys", "teacher.state_dict()")
def module_instead_of_its_state():
    teacher, pupil = nn.Linear(2, 2), nn.Linear(2, 2)
    pupil.load_state_dict(teacher)  # raised here


@case("module-before-init", "lazy")
def lazy_layer_counted_too_early():
    net = nn.LazyLinear(3)
    return sum(p.numel() for p in net.parameters())  # raised here


@case("target-shape", "6", "5 steps")
def ctc_of_too_many_steps():
    scores = torch.randn(5, 1, 4).log_softmax(2)
    return F.ctc_loss(scores, torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2]))  # raised here


@case("target-shape", "one target for each sample")
def pair_labels_in_a_column():
    same = torch.ones(4, 1)
    return F.cosine_embedding_loss(torch.randn(4, 3), torch.randn(4, 3), same)  # raised here


@case("distribution-values", "`spread`")
def scale_given_by_position():
    spread = torch.tensor([1.0, -1.0])
    return torch.distributions.Normal(torch.zeros(2), spread)  # raised here


@case("parameter-non-leaf", "`start`")
def computed_weight_assigned():
    layer = nn.Linear(2, 2)
    start = torch.eye(2, requires_grad=True) * 0.1
    layer.weight = start  # raised here


@case("index-dtype", "ages[:, 0].long()")
def column_of_floats_looked_up():
    table, ages = nn.Embedding(5, 2), torch.ones(3, 2)
    return table(ages[:, 0])  # raised here


def softened(values):
    gates = values.sigmoid()  # saved here
    gates *= 0.5  # overwritten here
    return gates


@case("in-place", "`softened`, which has returned", "gates = gates * 0.5", certain=False)
def written_in_a_function_that_has_returned():
    v = torch.ones(3, requires_grad=True)
    softened(v).sum().backward()  # needed here
