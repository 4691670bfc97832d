"""Errors of seeds, hooks, custom Functions and torch.func."""

import torch
from torch import nn
from torch.autograd import Function, grad, gradcheck
from torch.nn.functional import mse_loss

from tests.explain.provoked import case


@case("seed-missing", "loss", "(4,)")
def backward_of_a_vector():
    w = torch.ones(4, requires_grad=True)
    loss = w**2
    loss.backward()  # raised here


@case("seed-missing", "y")
def grad_of_a_vector():
    w = torch.ones(4, requires_grad=True)
    y = w * 2
    grad(y, w)  # raised here


@case("seed-shape", "(3,)", "(2,)")
def seed_of_another_shape():
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.backward(torch.ones(2))  # raised here


@case("seed-type", "float")
def seed_that_is_a_number():
    w = torch.ones(3, requires_grad=True)
    (w * 2).backward(1.0)  # raised here


class TooFew(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        _, w = ctx.saved_tensors
        return g * w  # returned here


@case("gradient-count", "TooFew", "2")
def too_few_gradients():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    TooFew.apply(x, w).sum().backward()  # raised here


class WrongShape(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return g * torch.ones(3)  # returned here


@case("gradient-shape", "WrongShape", "(4,)", "(3,)")
def gradient_of_the_wrong_shape():
    x = torch.ones(4, requires_grad=True)
    WrongShape.apply(x).backward()  # raised here


class NumberAsGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return 2.0  # returned here


@case("gradient-type", "NumberAsGradient", "float")
def gradient_that_is_a_number():
    x = torch.ones(4, requires_grad=True)
    NumberAsGradient.apply(x).sum().backward()  # raised here


class Legacy(Function):
    def forward(self, x):
        return x * 2

    def backward(self, g):
        return g * 2


@case("legacy-function", "Legacy", "staticmethod")
def legacy_function():
    x = torch.ones(4, requires_grad=True)
    return Legacy()(x)  # raised here


@case("function-called", "TooFew.apply", warns=True)
def function_called_without_apply():
    x = torch.ones(4, requires_grad=True)
    return TooFew(x, x)  # raised here


class NoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


@case("function-without-backward", "NoBackward")
def function_without_backward():
    x = torch.ones(4, requires_grad=True)
    NoBackward.apply(x).sum().backward()  # raised here


class SavesANumber(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, 3.0)  # raised here
        return x * 3.0

    @staticmethod
    def backward(ctx, g):
        return g * 3.0


@case("save-for-backward", "float")
def save_for_backward_of_a_number():
    return SavesANumber.apply(torch.ones(2, requires_grad=True))


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


@case("no-graph-second-order", "@once_differentiable", certain=False)
def differentiated_twice():
    x = torch.ones(2, requires_grad=True)
    (g,) = grad(Once.apply(x).sum(), x, create_graph=True)  # computed here
    g.sum().backward()  # raised here


class WithCtx(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@case("setup-context", "WithCtx")
def function_under_torch_func():
    return torch.func.grad(lambda x: WithCtx.apply(x).sum())(torch.ones(2))  # raised here


class MarksDirtyNothing(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


@case("leaf-in-place", "x")
def mark_dirty_on_a_leaf():
    x = torch.ones(2, requires_grad=True)
    MarksDirtyNothing.apply(x)  # raised here


@case("grad-assigned", "w.grad", "(2,)", "(3,)")
def grad_of_another_shape():
    w = torch.ones(3, requires_grad=True)
    w.grad = torch.ones(2)  # raised here


@case("grad-assigned", "float64")
def grad_of_another_dtype():
    w = torch.ones(3, requires_grad=True)
    w.grad = torch.ones(3, dtype=torch.float64)  # raised here


@case("grad-assigned", "float")
def grad_that_is_a_number():
    w = torch.ones(3, requires_grad=True)
    w.grad = 0.0  # raised here


@case("hook-without-graph", "x")
def hook_on_a_tensor_without_grad():
    x = torch.ones(3)
    x.register_hook(lambda g: g)  # raised here


@case("hook-result", "another shape")
def hook_that_changes_the_size():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g.sum())
    y.sum().backward()  # raised here


@case("hook-result", "float")
def hook_that_returns_a_number():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 2.0)
    y.sum().backward()  # raised here


@case("retain-grad-refused", "x")
def retain_grad_without_grad():
    x = torch.ones(3)
    x.retain_grad()  # raised here


@case("hook-on-leaves-only", "y")
def post_accumulate_hook_on_a_non_leaf():
    y = torch.ones(3, requires_grad=True) * 2
    y.register_post_accumulate_grad_hook(lambda p: None)  # raised here


@case("hook-not-firing", certain=False, warns=True)
def full_backward_hook_that_sees_no_inputs():
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda module, gin, gout: None)
    layer(torch.ones(2, 3)).sum().backward()  # raised here


@case("vmap-item", "item()")
def item_inside_vmap():
    def f(x):
        return x * x.item()  # raised here

    return torch.func.vmap(f)(torch.ones(3))


@case("vmap-branch", "torch.where")
def branch_inside_vmap():
    def f(x):
        if x > 0:  # raised here
            return x
        return -x

    return torch.func.vmap(f)(torch.ones(3))


@case("vmap-random", "randomness")
def random_inside_vmap():
    return torch.func.vmap(lambda x: x + torch.randn(2))(torch.ones(3, 2))  # raised here


@case("vmap-in-place", "`total`")
def in_place_inside_vmap():
    total = torch.zeros(2)

    def f(x):
        total.add_(x)  # raised here
        return total

    return torch.func.vmap(f)(torch.ones(3, 2))


@case("vmap-sizes", "3", "4")
def vmap_of_unequal_sizes():
    return torch.func.vmap(torch.add)(torch.ones(3, 2), torch.ones(4, 2))  # raised here


class WrongFormula(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * g  # backward of it


@case("gradcheck-mismatch", "WrongFormula", certain=False)
def gradcheck_of_a_wrong_formula():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    gradcheck(WrongFormula.apply, x)  # raised here


@case("gradcheck-precision", "float64", warns=True)
def gradcheck_in_single_precision():
    x = torch.ones(3, requires_grad=True)
    gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-1)


@case("gradcheck-inputs", "requires_grad")
def gradcheck_without_grad():
    gradcheck(torch.sin, torch.ones(3, dtype=torch.float64))  # raised here


@case("zero-tensor", "mse_loss", certain=False)
def zero_tensor_written():
    w, v = torch.ones(3), torch.ones(3)
    torch.func.jvp(torch.func.grad(lambda w: mse_loss(w * 2, torch.zeros(3))), (w,), (v,))  # raised here


@case("no-derivative", "_ctc_loss_backward", certain=False)
def derivative_not_implemented():
    x = torch.rand(1, 3, 4, requires_grad=True)
    out = torch.nn.functional.ctc_loss(
        x.log_softmax(2).transpose(0, 1), torch.tensor([[1, 2]]), torch.tensor([3]), torch.tensor([2])
    )
    (g,) = grad(out, x, create_graph=True)
    g.sum().backward()  # raised here


@case("seed-type", "float")
def seeds_in_a_list():
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    torch.autograd.backward([y], [1.0])  # raised here


@case("transform-backward", "torch.func.grad")
def backward_inside_a_transform():
    def f(x):
        y = (x * x).sum()
        y.backward()  # raised here
        return y

    return torch.func.grad(f)(torch.ones(2))


@case("once-differentiable")
def second_derivative_through_a_function_for_one():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (g,) = grad((Once.apply(x) * w).sum(), x, create_graph=True)
    g.sum().backward()  # raised here
