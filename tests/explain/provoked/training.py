"""Errors of optimizers, schedulers, mixed precision, state, and numbers."""

import torch
from torch import nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, ReduceLROnPlateau, StepLR

from tests.explain.provoked import case


@case("optimizer-of-nothing", "parameters()")
def optimizer_of_an_empty_list():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2)]  # kept here

    model = Net()
    return SGD(model.parameters(), lr=0.1)  # raised here


@case("optimizer-of-nothing", "generator", certain=False)
def optimizer_of_a_generator_used_up():
    model = nn.Linear(2, 2)
    parameters = model.parameters()  # made here
    sum(p.numel() for p in parameters)
    return Adam(parameters)  # raised here


@case("optimizer-non-leaf", "w", "requires_grad_()")
def optimizer_of_a_non_leaf():
    w = torch.randn(3, requires_grad=True) * 0.01  # made here
    return SGD([w], lr=0.1)  # raised here


@case("optimizer-of-no-tensors", "parameters()")
def optimizer_of_a_model():
    model = nn.Linear(2, 2)
    return SGD(model, lr=0.1)  # raised here


@case("optimizer-of-no-tensors", "w")
def optimizer_of_a_tensor():
    w = torch.randn(3, requires_grad=True)
    return SGD(w, lr=0.1)  # raised here


@case("optimizer-of-no-tensors", "parameters()")
def optimizer_of_names():
    model = nn.Linear(2, 2)
    return SGD([model.state_dict], lr=0.1)  # raised here


@case("parameters-twice", "model")
def parameters_in_two_groups():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    return SGD([{"params": model.parameters()}, {"params": model[0].parameters()}], lr=0.1)  # raised here


@case("parameters-twice", warns=True)
def parameters_twice_in_a_list():
    model = nn.Linear(2, 2)
    return SGD([*model.parameters(), *model.parameters()], lr=0.1)


@case("optimizer-setting", "-0.1")
def negative_learning_rate():
    return SGD(nn.Linear(2, 2).parameters(), lr=-0.1)  # raised here


@case("scheduler-first", "optimizer.step()", certain=False, warns=True)
def scheduler_before_optimizer():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scheduler = StepLR(optimizer, 1)
    scheduler.step()  # raised here
    optimizer.step()


@case("closure-missing", "LBFGS", "closure")
def lbfgs_without_closure():
    optimizer = torch.optim.LBFGS(nn.Linear(2, 2).parameters())
    optimizer.step()  # raised here


@case("closure-missing", "closure")
def sam_like_without_closure():
    optimizer = torch.optim.LBFGS(nn.Linear(2, 2).parameters())
    optimizer.step(None)  # raised here


@case("metrics-missing", "scheduler", "loss")
def plateau_without_metric():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scheduler = ReduceLROnPlateau(optimizer)
    scheduler.step()  # raised here


@case("scheduler-too-long", "10")
def one_cycle_too_long():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scheduler = OneCycleLR(optimizer, max_lr=0.1, total_steps=10)  # made for 10 steps
    for _ in range(12):
        optimizer.step()
        scheduler.step()  # raised here


@case("scheduler-initial-lr", "last_epoch")
def scheduler_that_resumes_without_state():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    return CosineAnnealingLR(optimizer, 10, last_epoch=4)  # raised here


@case("scaler-without-gradients", "backward", certain=False)
def scaler_step_without_backward():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.step(optimizer)  # raised here


@case("scaler-unscaled-twice", "update")
def scaler_unscale_twice():
    model = nn.Linear(2, 2)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)  # raised here


@case("scaler-stage", "update")
def scaler_step_twice():
    model = nn.Linear(2, 2)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.step(optimizer)
    scaler.step(optimizer)  # raised here


@case("scaler-stage", "unscale_")
def scaler_unscale_after_step():
    model = nn.Linear(2, 2)
    optimizer = SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)  # raised here


@case("scaler-stage", "scale", certain=False)
def scaler_update_first():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.step(optimizer)  # raised here


@case("scaler-stage", certain=False)
def scaler_update_without_step():
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.update()  # raised here


@case("non-finite-norm", "weight")
def clip_of_infinite_gradients():
    model = nn.Linear(2, 2)
    (model(torch.ones(1, 2)).sum() * float("inf")).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # raised here


@case("state-keys", "module.")
def state_of_data_parallel():
    model = nn.Linear(2, 2)
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    model.load_state_dict(state)  # raised here


@case("state-keys", "model", certain=False)
def state_of_another_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model.load_state_dict(nn.Linear(2, 2).state_dict())  # raised here


@case("state-shape", "weight", "(3, 2)", "(2, 2)")
def state_of_another_shape():
    model = nn.Linear(2, 2)
    model.load_state_dict(nn.Linear(2, 3).state_dict())  # raised here


@case("state-keys", "checkpoint")
def state_of_a_whole_checkpoint():
    model = nn.Linear(2, 2)
    checkpoint = {"model": model.state_dict(), "epoch": 3}
    model.load_state_dict(checkpoint)  # raised here


@case("state-groups", "optimizer")
def optimizer_state_of_other_groups():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    saved = SGD([{"params": a.weight}, {"params": a.bias}], lr=0.1).state_dict()
    optimizer = SGD(b.parameters(), lr=0.1)
    optimizer.load_state_dict(saved)  # raised here


@case("state-groups", "optimizer")
def optimizer_state_of_another_size():
    saved = SGD([nn.Linear(2, 2).weight], lr=0.1).state_dict()
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    optimizer.load_state_dict(saved)  # raised here


class Forgot(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(2, 2)  # raised here


@case("module-before-init", "super().__init__()", "Forgot")
def module_before_init():
    return Forgot()


class ForgotParameter(nn.Module):
    def __init__(self):
        self.w = nn.Parameter(torch.ones(2))  # raised here


@case("module-before-init", "super().__init__()")
def parameter_before_init():
    return ForgotParameter()


class ForgotAndCalled(nn.Module):
    def __init__(self):
        self.size = 3

    def forward(self, x):
        return x


@case("module-before-init", "super().__init__()", "ForgotAndCalled")
def module_called_before_init():
    return ForgotAndCalled()(torch.ones(2))  # raised here


@case("parameter-not-tensor", "weight")
def tensor_assigned_to_a_parameter():
    model = nn.Linear(2, 2)
    model.weight = torch.zeros(2, 2)  # raised here


@case("parameter-non-leaf", "w")
def non_leaf_registered_as_parameter():
    model = nn.Linear(2, 2)
    w = nn.Parameter(torch.ones(2)) * 2
    model.register_parameter("w", w)  # raised here


@case("not-a-module", "relu")
def module_list_of_functions():
    return nn.ModuleList([nn.Linear(2, 2), torch.relu])  # raised here


@case("nan-in-backward", "sqrt")
def nan_from_sqrt():
    x = torch.zeros(3, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = torch.sqrt(x) * 0  # made here
        y.sum().backward()  # raised here


@case("distribution-values", "scale")
def normal_of_negative_scale():
    scale = torch.tensor([-1.0])
    return torch.distributions.Normal(torch.zeros(1), scale)  # raised here


@case("distribution-values", "nan")
def categorical_of_nan():
    logits = torch.tensor([float("nan"), 1.0])
    return torch.distributions.Categorical(logits=logits)  # raised here


@case("distribution-values", "Bernoulli")
def log_prob_out_of_support():
    return torch.distributions.Bernoulli(0.5).log_prob(torch.tensor(2.0))  # raised here


@case("distribution-values", "nan")
def multinomial_of_nan():
    probs = torch.tensor([float("nan"), 1.0])
    return torch.multinomial(probs, 1)  # raised here


@case("module-without-forward", "forward")
def module_without_forward():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()

        def fordward(self, x):
            return x

    return Net()(torch.ones(2))  # raised here


@case("not-one-number", "loss > 0.5")
def branch_on_a_vector():
    loss = torch.ones(3)
    if loss > 0.5:  # raised here
        return loss


@case("scheduler-epoch", "epoch", warns=True)
def scheduler_step_with_epoch():
    optimizer = SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scheduler = StepLR(optimizer, 1)
    optimizer.step()
    scheduler.step(3)  # raised here


@case("not-one-number", "3")
def item_of_a_vector():
    return torch.ones(3).item()  # raised here


@case("parameters-twice", "model.weight")
def add_param_group_twice():
    model = nn.Linear(2, 2)
    optimizer = SGD(model.parameters(), lr=0.1)
    optimizer.add_param_group({"params": model.weight})  # raised here


@case("parameter-non-leaf", "w")
def parameter_that_became_part_of_a_graph():
    w = nn.Parameter(torch.ones(2), requires_grad=False)
    w.mul_(torch.ones(2, requires_grad=True))
    model = nn.Linear(2, 2)
    model.register_parameter("w", w)  # raised here
