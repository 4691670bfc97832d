"""What several answers of lesson 02 share."""

import torch


def vjp_by_autograd(operation):
    def answer(a, b, v):
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        return torch.autograd.grad(operation(a, b), (a, b), v)

    return answer
