"""What takes numbers of two tensors in pairs, and what moves or updates them."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.observers.operations import is_product
from course_utils.graph.alive import tensors_in

W, X = torch.ones(3, 4), torch.ones(2, 4)


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if is_product(function, list(tensors_in((args, list((kwargs or {}).values())))), list(tensors_in((result,)))):
            self.found.append(function.overloadpacket.__name__)
        return result


@pytest.mark.parametrize(
    "run",
    [
        lambda: X @ W.T,
        lambda: nn.functional.linear(X, W, torch.ones(3)),
        lambda: nn.functional.conv1d(X[:, :, None], W[:, :, None]),
        lambda: nn.functional.bilinear(X, X, torch.ones(2, 4, 4)),
        lambda: torch.einsum("ni,oi->no", X, W),
        lambda: torch.cdist(X, W),
        lambda: X[:, None] * W,
        lambda: torch.addmm(torch.ones(3), X, W.T, out=torch.empty(2, 3)),
        lambda: nn.functional.embedding_bag(torch.zeros(2, 4).long(), W, per_sample_weights=X, mode="sum"),
    ],
)
def test_a_product_is_one_whatever_it_is_called(run) -> None:
    with Counting() as counting:
        run()
    assert counting.found


@pytest.mark.parametrize(
    "run",
    [
        lambda: X + X,
        lambda: W.clone().sub_(W, alpha=0.1).lerp_(W, 0.5).addcmul_(W, W),
        lambda: torch.where(W > 0, W, W * 2),
        lambda: torch.cat([X, W]).tanh().sum(),
        lambda: W.index_select(0, torch.tensor([0, 1])),
        lambda: W.clone().copy_(W),
        lambda: torch._foreach_add_([W.clone()], [W]),
        lambda: nn.functional.cross_entropy(X, torch.tensor([0, 1])),
        lambda: nn.functional.softmax(X, 1),
    ],
)
def test_updates_moves_and_losses_are_none(run) -> None:
    with Counting() as counting:
        run()
    assert not counting.found
