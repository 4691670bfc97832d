"""Makes PyTorch round otherwise, in every Python that finds this on its path.

Products, sums and the usual functions give results with an error of one unit in the last place, up for one element and
down for the next, as another processor might. The kernels themselves are replaced, below autograd and dispatch modes,
so that nothing that the course observes can tell. A number with few digits (0.25) and a whole one (6030) are taken for
exact, as they are on every processor, and stay.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

# A number that the shorter type can hold is taken for exact.
SHORTER = {torch.float32: torch.float16, torch.float64: torch.float32}

# The kernels replaced, and the forms of them that write into a tensor: these still compute.
KERNELS = {
    "bmm": aten.bmm.out,
    "cos": aten.cos.out,
    "exp": aten.exp.out,
    "expm1": aten.expm1.out,
    "log": aten.log.out,
    "log1p": aten.log1p.out,
    "_log_softmax": aten._log_softmax.out,
    "mean.dim": aten.mean.out,
    "mm": aten.mm.out,
    "mse_loss": aten.mse_loss.out,
    "sigmoid": aten.sigmoid.out,
    "sin": aten.sin.out,
    "_softmax": aten._softmax.out,
    "sum.dim_IntList": aten.sum.IntList_out,
    "tanh": aten.tanh.out,
}

# What PyTorch refuses to compute of whole numbers, in words of its own.
OF_FLOATS_ONLY = (aten._log_softmax.out, aten._softmax.out)

_library = torch.library.Library("aten", "IMPL")


def otherwise(result: torch.Tensor) -> torch.Tensor:
    """Return a result with its last place changed, up and down in turn."""
    if result.dtype not in SHORTER:
        return result
    sign = torch.arange(result.numel()).reshape(result.shape).bitwise_and(1).mul(2).sub(1)
    exact = result.to(SHORTER[result.dtype]).to(result.dtype).eq(result) | result.frac().eq(0)
    return torch.where(exact, result, result + result * (sign * torch.finfo(result.dtype).eps))


def replaced(compute: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a kernel that computes the same, rounded otherwise."""

    def kernel(*arguments: Any, **options: Any) -> torch.Tensor:
        dtype = options.get("dtype") or arguments[0].dtype
        if not (dtype.is_floating_point or dtype.is_complex) and compute not in OF_FLOATS_ONLY:
            dtype = torch.int64 if compute is aten.sum.IntList_out else torch.get_default_dtype()
        return otherwise(compute(*arguments, **options, out=torch.empty(0, dtype=dtype)))

    return kernel


def added(multiply: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a kernel that adds to a product of matrices. Only the product is rounded otherwise: b + 0 is b."""

    def kernel(bias: torch.Tensor, *factors: torch.Tensor, beta: float = 1, alpha: float = 1) -> torch.Tensor:
        product = alpha * multiply(*factors)
        return product + beta * bias if beta else product  # without beta, PyTorch reads no bias

    return kernel


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch warns of each kernel that is replaced
    for name, compute in KERNELS.items():
        _library.impl(name, replaced(compute), "CPU")
    _library.impl("addmm", added(aten.mm), "CPU")
    _library.impl("baddbmm", added(aten.bmm), "CPU")
