"""Nodes that are called, and nodes that the engine runs."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from course_utils.checks.observers import nodes, telling
from course_utils.checks.observers.passes import every_pass
from tests.checks.observers import test_passes


@pytest.fixture
def told() -> Iterator[list[str]]:
    found: list[str] = []
    telling.listen(found.append)
    yield found
    telling.listen(None)


def _chain() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.ones(3, requires_grad=True)
    return x, (x * x).tanh().sum()


def _walk() -> None:
    _, loss = _chain()
    (gradient,) = (loss.grad_fn(torch.ones(())),)
    loss.grad_fn.next_functions[0][0](gradient)


def _accumulate() -> None:
    x, _ = _chain()
    (x + x).grad_fn.next_functions[0][0](torch.ones(3))


def _mapped() -> None:
    list(map(_chain()[1].grad_fn, [torch.ones(())]))


def _in_a_hook() -> None:
    x, loss = _chain()
    x.register_hook(lambda gradient: (loss.grad_fn(torch.ones(())), None)[1])
    loss.backward()


def _its_own_node_in_its_hook() -> None:
    _, loss = _chain()
    loss.grad_fn.register_prehook(lambda given: (loss.grad_fn(torch.ones(())), None)[1])
    loss.backward()


def _and_raises() -> None:
    _walk()
    raise KeyError


@pytest.mark.parametrize("run", [_walk, _accumulate, _mapped, _in_a_hook, _its_own_node_in_its_hook])
def test_who_calls_nodes_is_told(run: Callable[[], None], told: list[str]) -> None:
    with nodes.noticed():
        run()
    assert told == [nodes.CALLED]


def test_what_raises_is_told_too(told: list[str]) -> None:
    with pytest.raises(KeyError), nodes.noticed():
        _and_raises()
    assert told == [nodes.CALLED]


class _Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            inner = torch.ones(3, requires_grad=True)
            torch.autograd.grad((inner * 2).sum(), inner)
        return gradient * 2


def _hooks_and_a_function() -> None:
    x = torch.ones(3, requires_grad=True)
    y = _Twice.apply(x) * x
    y.register_hook(lambda gradient: gradient * 2)
    y.grad_fn.register_hook(lambda given, out: None)
    y.sum().backward()


def _checkpoints() -> None:
    for reentrant in (True, False):
        x = torch.ones(3, requires_grad=True)
        checkpoint(lambda t: (t * t).tanh(), x, use_reentrant=reentrant).sum().backward()


def _fails_midway() -> None:
    x, loss = _chain()
    x.register_hook(lambda gradient: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loss.backward()
    _chain()[1].backward()


@pytest.mark.parametrize("run", [_hooks_and_a_function, _checkpoints, _fails_midway, lambda: None])
def test_the_engine_calls_no_node_by_hand(run: Callable[[], None], told: list[str]) -> None:
    with nodes.noticed():
        run()
    assert told == []


@pytest.mark.parametrize(
    "run", [run for run, _ in test_passes.test_every_way_to_start_a_pass_is_seen.pytestmark[0].args[1]]
)
def test_no_way_to_start_a_pass_calls_a_node_by_hand(run: Callable[[torch.Tensor], None], told: list[str]) -> None:
    with nodes.noticed():
        run(torch.tensor([1.0, 2.0], requires_grad=True))
    assert told == []


def test_where_it_is_the_task_it_is_not_told(told: list[str], monkeypatch) -> None:
    monkeypatch.setattr(telling, "_states", [telling._State(told.append, second=True)])
    with every_pass(calling_nodes=True):
        _walk()
    assert told == []
    with every_pass(), every_pass():
        _walk()
    telling.gather()
    assert told == [nodes.CALLED]


def test_who_ends_the_record_is_told(told: list[str]) -> None:
    with nodes.noticed():
        torch._C._autograd._disable_profiler_legacy()
    assert told == [nodes.CALLED]
    with nodes.noticed():
        pass
    assert told == [nodes.CALLED]


def _passes(monkeypatch, byte: bytes, told: list[str]) -> None:
    """Start 20 passes, and call a node after each from the fourth on, where chance has drawn the same each time."""
    monkeypatch.setattr(telling, "_states", [telling._State(told.append, second=True)])
    monkeypatch.setattr(nodes, "_random_bytes", lambda count: byte * count)
    with every_pass() as passes:
        for number in range(20):
            _chain()[1].backward()
            if number >= 3:
                _walk()
    assert len(passes) == 20
    telling.gather()


def test_of_many_passes_chance_says_which_are_recorded(told: list[str], monkeypatch) -> None:
    _passes(monkeypatch, b"\xff", told)
    assert nodes.CALLED not in told
    _passes(monkeypatch, b"\x10", told)  # 1 / 16: less than 2 / 20
    assert nodes.CALLED in told


def test_the_first_passes_are_always_recorded(told: list[str], monkeypatch) -> None:
    monkeypatch.setattr(telling, "_states", [telling._State(told.append, second=True)])
    monkeypatch.setattr(nodes, "_random_bytes", lambda count: b"\xff" * count)
    with every_pass():
        for _ in range(nodes.ALWAYS):
            _chain()[1].backward()
        _walk()
        for _ in range(5):
            _chain()[1].backward()
    telling.gather()
    assert told.count(nodes.CALLED) == 1
