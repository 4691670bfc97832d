"""Noticing runs, however a module is called."""

import copy
import threading

import pytest
import torch
from torch import nn

from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import hooks_on, parts_of


def in_a_thread(model, x):
    thread = threading.Thread(target=lambda: model(x))
    thread.start()
    thread.join()


def without_hooks(model, x):
    model._forward_hooks.clear()
    model(x)


@pytest.mark.parametrize(
    "run",
    [
        lambda model, x: model(x),
        lambda model, x: model.forward(x),
        lambda model, x: copy.copy(model)(x),
        lambda model, x: copy.deepcopy(model).forward(x),
        lambda model, x: torch.func.functional_call(model, dict(model.named_parameters()), (x,)),
        lambda model, x: torch.func.vmap(model)(x),
        lambda model, x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False),
        in_a_thread,
        without_hooks,
    ],
)
def test_every_way_to_run_a_module_is_seen_once(run):
    model, seen = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), []
    notice(model, lambda module, inputs, result: seen.append((type(module), len(inputs))))
    run(model, torch.ones(4, 2))
    assert seen == [(nn.Sequential, 1)]


def test_a_deep_copy_runs_with_its_own_numbers():
    model = nn.Linear(2, 3)
    notice(model, lambda *given: None)
    own = copy.deepcopy(model)
    with torch.no_grad():
        own.weight.zero_()
        own.bias.zero_()
    assert not own(torch.ones(1, 2)).any()
    assert model(torch.ones(1, 2)).any()


def test_nothing_else_of_the_module_changes():
    model = nn.Linear(2, 3)
    before = list(model.state_dict())
    notice(model, lambda *given: None)
    assert type(model) is nn.Linear
    assert list(model.state_dict()) == before
    assert hooks_on(*parts_of(model)) == 0


def test_a_run_is_told_when_it_begins_and_named_inputs_come_last():
    model, order = nn.LSTM(2, 3), []
    state = torch.zeros(1, 3), torch.zeros(1, 3)
    notice(model, lambda module, inputs, result: order.append(inputs[1] is state), lambda: order.append("begins"))
    model(torch.ones(4, 2), hx=state)
    assert order == ["begins", True]
