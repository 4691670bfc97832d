"""What several answers of lesson 09 share."""

import torch


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
