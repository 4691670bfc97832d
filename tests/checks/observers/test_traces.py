"""Hooks, wherever they hang."""

import pytest
import torch
from torch.autograd.graph import get_gradient_edge

from course_utils.checks.observers.traces import hooks_on


@pytest.mark.parametrize("kind", ["register_hook", "register_prehook"])
def test_a_hook_on_the_node_that_accumulates_counts_until_it_is_removed(kind) -> None:
    leaf = torch.ones(2, requires_grad=True)
    node = get_gradient_edge(leaf).node
    hook = getattr(node, kind)(lambda *given: None)
    assert hooks_on(leaf) == 1
    hook.remove()
    assert hooks_on(leaf) == 0


def test_a_hook_on_the_tensor_counts_once() -> None:
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda gradient: None)
    leaf.register_post_accumulate_grad_hook(lambda tensor: None)
    assert hooks_on(leaf) == 2
    assert hooks_on(leaf.detach(), leaf * 2) == 0
