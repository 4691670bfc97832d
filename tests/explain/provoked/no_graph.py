"""Errors of tensors without a graph."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.explain.provoked import case


def model_and_data():
    torch.manual_seed(0)
    return nn.Linear(3, 1), torch.randn(5, 3), torch.randn(5, 1)


@case("no-graph-detach", "detach")
def detached_prediction():
    model, x, y = model_and_data()
    pred = model(x).detach()  # cut here
    loss = F.mse_loss(pred, y)
    loss.backward()  # raised here


@case("no-graph-detach", ".data")
def data_of_prediction():
    model, x, y = model_and_data()
    pred = model(x)
    loss = ((pred.data - y) ** 2).mean()  # cut here
    loss.backward()  # raised here


@case("no-graph-item", "item()")
def loss_from_items():
    model, x, y = model_and_data()
    loss = torch.tensor(0.0)
    for row, target in zip(x, y, strict=True):
        loss += (model(row) - target).pow(2).sum().item()  # cut here
    loss.backward()  # raised here


@case("no-graph-numpy", "NumPy")
def loss_by_way_of_numpy():
    model, x, y = model_and_data()
    array = model(x).detach().numpy()  # cut here
    loss = torch.from_numpy(np.square(array - y.numpy())).mean()
    loss.backward()  # raised here


@case("no-graph-new-tensor", "torch.tensor")
def loss_wrapped_anew():
    model, x, y = model_and_data()
    losses = [F.mse_loss(model(row), target) for row, target in zip(x, y, strict=True)]
    loss = torch.tensor(losses).mean()  # cut here
    loss.backward()  # raised here


@case("no-graph-argmax", "argmax")
def accuracy_as_a_loss():
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    labels = torch.tensor([0, 1, 2, 3, 0])
    predicted = model(x).argmax(dim=1)  # cut here
    loss = 1 - (predicted == labels).float().mean()
    loss.backward()  # raised here


@case("no-graph-integers", "int")
def rounded_to_integers():
    model, x, y = model_and_data()
    pred = model(x).long()  # cut here
    loss = (pred - y).abs().mean()
    loss.backward()  # raised here


@case("no-graph-no-grad", "no_grad")
def inside_no_grad():
    model, x, y = model_and_data()
    with torch.no_grad():  # cut here
        pred = model(x)
        loss = F.mse_loss(pred, y)
    loss.backward()  # raised here


@case("no-graph-frozen", "model")
def everything_frozen():
    model, x, y = model_and_data()
    for parameter in model.parameters():
        parameter.requires_grad = False  # freezes here
    loss = F.mse_loss(model(x), y)
    loss.backward()  # raised here


@case("no-graph-inputs", "x", "requires_grad", certain=False)
def nothing_requires_grad():
    x = torch.tensor([1.0, 2.0])
    y = (x**2).sum()
    y.backward()  # raised here


@case("not-a-tensor", "item()")
def backward_of_a_float():
    model, x, y = model_and_data()
    loss = F.mse_loss(model(x), y).item()  # cut here
    loss.backward()  # raised here


@case("not-a-tensor", "MSELoss")
def backward_of_a_loss_module():
    model, x, _ = model_and_data()
    loss = nn.MSELoss()
    model(x)
    loss.backward()  # raised here


def forgets_to_return(model, x, y):
    loss = F.mse_loss(model(x), y)  # noqa: F841


@case("not-a-tensor", "None", "forgets_to_return")
def backward_of_none():
    model, x, y = model_and_data()
    loss = forgets_to_return(model, x, y)
    loss.backward()  # raised here


@case("not-a-tensor", "list")
def backward_of_a_list():
    model, x, y = model_and_data()
    losses = [F.mse_loss(model(row), target) for row, target in zip(x, y, strict=True)]
    losses.backward()  # raised here


@case("grad-needs-floats", "integers")
def integers_that_require_grad():
    return torch.tensor([1, 2, 3], requires_grad=True)  # raised here


@case("grad-needs-floats", "x")
def integers_set_to_require_grad():
    x = torch.arange(3)
    x.requires_grad_()  # raised here


@case("not-in-graph", "w", "y", certain=False)
def gradient_of_what_was_not_used():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    torch.autograd.grad(y, [x, w])  # raised here


@case("not-in-graph-second-order", "linear", certain=False)
def second_derivative_of_a_linear_function():
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((3 * x * w).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)  # raised here


@case("not-in-graph-second-order", "`number` comes from a gradient", certain=False)
def second_derivatives_of_a_linear_function_one_by_one():
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    grads = torch.autograd.grad((3 * x + w**3).sum(), [x, w], create_graph=True)
    flat = torch.cat([g.flatten() for g in grads])
    for number in flat:
        torch.autograd.grad(number, [x, w], retain_graph=True)  # raised here


@case("input-without-grad", "x")
def gradient_of_an_input_without_grad():
    w = torch.ones(2, requires_grad=True)
    x = torch.ones(2)
    y = (w * x).sum()
    torch.autograd.grad(y, x)  # raised here


@case("no-graph-second-order", "create_graph=True")
def second_order_without_create_graph():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x)  # computed here
    torch.autograd.grad(first, x)  # raised here


@case("no-graph-second-order", "create_graph=True", ".grad")
def backward_of_a_grad():
    x = torch.tensor(2.0, requires_grad=True)
    (x**3).backward()
    x.grad.backward()  # computed here, raised here


@case("numpy-of-graph", "pred.detach()")
def numpy_of_a_prediction():
    model, x, _ = model_and_data()
    pred = model(x)
    return pred.numpy()  # raised here


@case("numpy-of-graph", "detach()")
def numpy_function_of_a_prediction():
    model, x, _ = model_and_data()
    return np.array(model(x))  # raised here


@case("copy-construct", "w", warns=True)
def copy_construct():
    w = torch.ones(2, requires_grad=True)
    return torch.tensor(w)  # raised here


@case("grad-of-non-leaf", "h", "retain_grad", warns=True)
def grad_of_a_non_leaf():
    x = torch.ones(2, requires_grad=True)
    h = x * 2  # computed here
    h.sum().backward()
    return h.grad  # read here


@case("inference-tensor", "x", "inference_mode")
def inference_tensor_saved():
    w = torch.ones(3, requires_grad=True)
    with torch.inference_mode():  # made here
        x = torch.ones(3) * 2
    return (w * x).sum()  # raised here


@case("inference-tensor", "inference_mode")
def inference_tensor_written():
    with torch.inference_mode():  # made here
        x = torch.ones(3)
    x.add_(1)  # raised here


@case("inference-tensor", "inference_mode")
def inference_tensor_requires_grad():
    with torch.inference_mode():  # made here
        x = torch.ones(3)
    x.requires_grad_()  # raised here


@case("no-graph-inference", "inference_mode")
def backward_after_inference():
    model, x, y = model_and_data()
    with torch.inference_mode():  # cut here
        loss = F.mse_loss(model(x), y)
    loss.backward()  # raised here


@case("grad-is-none", "w.grad", "None", certain=False)
def norm_of_no_gradient():
    w = torch.ones(2, requires_grad=True)
    return w.grad.norm()  # raised here


@case("grad-is-none", "w.grad", certain=False)
def arithmetic_with_no_gradient():
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        w -= 0.1 * w.grad  # raised here


@case("flag-of-non-leaf", "y")
def requires_grad_on_a_non_leaf():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.requires_grad = False  # raised here


@case("not-in-graph", "None", certain=False)
def none_from_allow_unused():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    gx, gw = torch.autograd.grad((x * 2).sum(), [x, w], allow_unused=True)  # asked for here
    return gx.norm() + gw.norm()  # raised here


@case("scalar-of-graph", "item()", certain=False, warns=True)
def float_of_a_loss():
    w = torch.ones(1, requires_grad=True)
    loss = (w * 2).sum()
    return float(loss)  # raised here
