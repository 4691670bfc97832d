"""What several answers of lesson 09 share."""

from functools import partialmethod
from unittest import mock

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

KEPT = []


def leaving(answer, mess):
    """A right answer that leaves something behind: mess(model) runs when it is done."""

    def left_behind(model, *given):
        returned = answer(model, *given)
        mess(model)
        return returned

    return left_behind


MESSES = [
    lambda model: torch.set_grad_enabled(False),
    lambda model: torch.autograd.set_detect_anomaly(True),
    lambda model: torch.set_default_dtype(torch.float64),
    lambda model: next(model.parameters()).requires_grad_(False),
    lambda model: model.register_full_backward_pre_hook(lambda *given: None),
]


def clearing_before_steps(answer):
    """A loop that clears the gradients between each pass and its step."""

    def still(*given):
        handle = register_optimizer_step_pre_hook(lambda optimizer, *more: optimizer.zero_grad())
        try:
            return answer(*given)
        finally:
            handle.remove()

    return still


def _of(kind, given):
    return [it for it in given if isinstance(it, kind)]


def _with_batch_changed(answer):
    def written(*given):
        returned = answer(*given)
        batches = next(it for it in given if hasattr(it, "__iter__") and not isinstance(it, nn.Module))
        next(iter(batches))[0].mul_(2)
        return returned

    return written


def _with_results_kept(answer):
    def kept(*given):
        parts = [part for module in _of(nn.Module, given) for part in module.modules()]
        handles = [part.register_forward_hook(lambda part, given, result: KEPT.append(result)) for part in parts]
        returned = answer(*given)
        for handle in handles:
            handle.remove()
        return returned

    return kept


def _with_graphs_retained(answer):
    def retained(*given):
        backward = partialmethod(torch.Tensor.backward, retain_graph=True)
        with mock.patch.object(torch.Tensor, "backward", backward):
            return answer(*given)

    return retained


def _with_one_part_turned(answer):
    def turned(*given):
        returned = answer(*given)
        *_, last = _of(nn.Module, given)[0].modules()
        last.train(not last.training)
        return returned

    return turned


def _with_other_settings(answer):
    def changed(*given):
        returned = answer(*given)
        for optimizer in _of(torch.optim.Optimizer, given):
            optimizer.param_groups[0]["maximize"] = True
        return returned

    return changed


def _with_a_step_more(answer):
    def stepped(*given):
        returned = answer(*given)
        for optimizer in _of(torch.optim.Optimizer, given):
            optimizer.zero_grad()
            optimizer.step()
        return returned

    return stepped


def slips(answer):
    """A right loop with one thing wrong each, by the finding that it fails."""
    return {
        "steps": _with_a_step_more(answer),
        "data": _with_batch_changed(answer),
        "graphs": _with_results_kept(answer),
        "freed": _with_graphs_retained(answer),
        "modes": _with_one_part_turned(answer),
        "settings": _with_other_settings(answer),
    }


def guarded(wrong, hooks, flags):
    """What guards the sentences above all tasks, by what `slips` made, and two answers that leave something.

    A task that has no such finding leaves the slip out.
    """
    unchanged = "So do the batches, the model's hooks and the optimizer's settings."
    sentences = {
        "Your loop makes one step of the given optimizer for each batch": {"steps": wrong.get("steps")},
        "What requires a gradient": {"flags": flags},
        "which part of the model is in which mode, stays as it was": {"modes": wrong.get("modes")},
        unchanged: {"data": wrong["data"], "hooks": hooks, "settings": wrong.get("settings")},
        "Before the optimizer steps, the backward pass has freed the step's graph": {"freed": wrong["freed"]},
        "No graph outlives your loop": {"graphs": wrong["graphs"]},
    }
    return {
        sentence: {finding: it for finding, it in by.items() if it is not None} for sentence, by in sentences.items()
    }
