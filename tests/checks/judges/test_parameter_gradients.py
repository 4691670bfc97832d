"""What is said of a gradient where there is none names the reason: frozen, or not in the graph."""

import pytest
import torch

from tests.answers.lesson_02_how_backward_works.parameter_gradients import parameters_by_grad
from tests.checks.verdicts import verdict_on


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("frozen.weight", "it does not require grad"),
        ("scale", "it does not require grad"),  # frozen after the forward pass, in one case
        ("spare.weight", "the loss has no gradient for it"),
    ],
)
def test_none_is_said_to_be_right_for_the_reason_that_holds(name, reason):
    def zeros(loss, model):
        found = parameters_by_grad(loss, model)
        return {**found, name: torch.zeros(1) if found[name] is None else found[name]}

    messages = verdict_on("parameter_gradients", zeros).messages
    assert f"expected None, since {reason}." in "".join(messages)
