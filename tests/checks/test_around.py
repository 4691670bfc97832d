"""What a task leaves as it was stays so: a right answer that puts models into training, or takes hooks off, fails."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from course_utils.checks.registry import exercises
from tests.answers import RIGHT
from tests.checks.verdicts import PATIENT_SECONDS, verdict_on

MODES = (
    *("train", "fewest_bytes", "fit_scale", "train_chunks", "two_updates", "split_at_trunk", "penalised_step"),
    *("gradient_penalty", "meta_gradient", "generator_step", "discriminator_step", "td_loss", "ema_update"),
    *("train_in_windows", "epoch_in_windows", "train_clipped", "accumulate", "fit_masked"),
)
HOOKS = (
    *("train", "fewest_bytes", "fit_scale", "train_chunks", "two_updates", "split_at_trunk", "penalised_step"),
    *("gradient_penalty", "meta_gradient", "generator_step", "discriminator_step", "td_loss"),
)


def models(items: Any) -> Iterator[nn.Module]:
    """Go through the models among the arguments of an answer, and in their lists."""
    for item in items:
        if isinstance(item, nn.Module):
            yield item
        elif isinstance(item, list | tuple):
            yield from models(item)


def slipping(answer: Callable[..., Any], slip: Callable[[nn.Module], object], *, first: bool) -> Callable[..., Any]:
    """Return an answer that does something to each model that it gets, before its work or after it."""

    def slipped(*given: Any) -> Any:
        if first:
            [slip(model) for model in models(given)]
        returned = answer(*given)
        if not first:
            [slip(model) for model in models(given)]
        return returned

    return slipped


def hookless(model: nn.Module) -> None:
    for part in model.modules():
        part._forward_hooks.clear()


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", MODES)
def test_modes_stay(name: str, first: bool) -> None:
    answer = next(it for it in RIGHT[name] if callable(it))
    assert verdict_on(name, slipping(answer, nn.Module.train, first=first)).outcome == "incorrect"


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_stay(name: str) -> None:
    answer = next(it for it in RIGHT[name] if callable(it))
    assert verdict_on(name, slipping(answer, hookless, first=False)).outcome == "incorrect"


FUNCTIONS = [name for name, exercise in exercises().items() if exercise.call not in (None, exercise.name)]
# What is left changed, and what is said of it.
SETTINGS: dict[str, Callable[[], object]] = {
    "the gradient mode is off; before, it was on": lambda: torch.set_grad_enabled(False),
    "anomaly mode is on; before, it was off": lambda: torch.autograd.set_detect_anomaly(True),
    "autocast on the CPU is on; before, it was off": lambda: torch.set_autocast_enabled("cpu", True),
    "deterministic mode is on; before, it was off": lambda: torch.use_deterministic_algorithms(True),
    "the default dtype is torch.float64; before, it was torch.float32": lambda: torch.set_default_dtype(torch.float64),
    "the default device is meta; before, it was cpu": lambda: torch.set_default_device("meta"),
    "the number of threads is 2; before, it was 1": lambda: torch.set_num_threads(2),
    "the precision of matrix products is medium; before, it was highest": lambda: torch.set_float32_matmul_precision(
        "medium"
    ),
    "the use of several threads in a backward pass is off; before, it was on": lambda: (
        torch.autograd.set_multithreading_enabled(False)
    ),
    "oneDNN is off; before, it was on": lambda: torch.backends.mkldnn.set_flags(False),
    "PyTorch's repeating of each warning is on; before, it was off": lambda: torch.set_warn_always(True),
    "the number of digits that tensors show is 2; before, it was 4": lambda: torch.set_printoptions(precision=2),
    "the scientific notation of tensors is off; before, it was None": lambda: torch.set_printoptions(sci_mode=False),
    "the flushing of the smallest numbers to zero is on; before, it was off": lambda: torch.set_flush_denormal(True),
    "cuDNN's search for the fastest algorithm is on; before, it was off": lambda: torch._C._set_cudnn_benchmark(True),
    "cuDNN's deterministic mode is on; before, it was off": lambda: torch._C._set_cudnn_deterministic(True),
    "the check of sparse tensors is on; before, it was off": torch.sparse.check_sparse_tensor_invariants.enable,
    "a hook on all saved tensors is on; before, it was off": lambda: (
        torch._C._autograd._push_saved_tensors_default_hooks(lambda x: x, lambda x: x)
    ),
    "the number of hooks for all modules is": lambda: register_module_forward_hook(lambda *run: None),
    "the number of hooks for all optimizers is": lambda: register_optimizer_step_post_hook(lambda *step: None),
    "the list of warnings that are ignored everywhere is ": lambda: warnings.simplefilter("ignore"),
    "the number of filters of Python's warnings is ": lambda: warnings.filterwarnings("ignore", "Detected call"),
    "UserWarning; before, it was ": lambda: warnings.filterwarnings("ignore", category=UserWarning),
}


def changing(answer: Callable[..., Any], change: Callable[[], object]) -> Callable[..., Any]:
    """Return an answer that leaves a setting changed when it is done."""

    def changed(*given: Any) -> Any:
        returned = answer(*given)
        change()
        return returned

    return changed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_number_of_threads_stays(name: str) -> None:
    answer = changing(RIGHT[name][0], SETTINGS["the number of threads is 2; before, it was 1"])
    verdict = verdict_on(name, answer, PATIENT_SECONDS)
    assert {it.prop for it in verdict.findings if not it.ok} == {"session"}
    assert verdict.misconceptions == ()


@pytest.mark.parametrize("said", SETTINGS)
@pytest.mark.parametrize("name", ["walk", "vjp_matmul", "fit_masked"])
def test_settings_stay(name: str, said: str) -> None:
    verdict = verdict_on(name, changing(RIGHT[name][0], SETTINGS[said]))
    assert verdict.outcome == "incorrect"
    assert [message for message in verdict.messages if said in message] or "grad" in said, verdict.messages
    assert verdict_on(name, RIGHT[name][0]).outcome == "correct", "the next answer meets what this one changed"
