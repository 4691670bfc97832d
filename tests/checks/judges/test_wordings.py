"""Sentences of a verdict are true of the answers that get them."""

import pytest

from tests.answers.lesson_01_graph_structure import connected_loss
from tests.answers.lesson_02_how_backward_works import jacobian, vjp_matmul
from tests.answers.lesson_03_graph_freeing import fewest_bytes
from tests.answers.lesson_04_retain_graph import train_chunks
from tests.answers.lesson_05_higher_order_gradients import gradient_penalty, hvp, largest_rate
from tests.answers.lesson_07_gradient_accumulation import step_in_backward
from tests.checks.verdicts import verdict_on

TOLD = {
    "v with its rows and columns swapped": (
        *("vjp_matmul", vjp_matmul.v_turned),
        *("Your function changed the shape or the dtype of v.", "Your function changed .grad"),
    ),
    "one f at two points": (
        *("jacobian", jacobian.remembering_functions),
        *("at another point, your function did not call f.", "You never called f."),
    ),
    "as many bytes": (
        *("fewest_bytes", fewest_bytes.adding_up_graphs),
        *("Your peak has about as many bytes as one run", "times fewer bytes than"),
    ),
    "more bytes": (
        *("fewest_bytes", fewest_bytes.keeping_all_results),
        *("times the bytes of one run", "times fewer bytes than"),
    ),
    "larger groups": (
        *("train_chunks", train_chunks.chunks_in_larger_groups),
        *("Graphs alive at each optimizer step: [3, 2]; the groups have [2, 2, 1] of their own.", "earlier groups"),
    ),
    "the gradient of another loss": (
        *("connected_loss", connected_loss.loss_with_the_gradient_of_another),
        *("is not the slope of the loss.", "path"),
    ),
    "a leaf": (
        *("hvp", hvp.hvp_live),
        *("What you returned requires a gradient.", "still has a graph"),
    ),
    "two things, one with a graph": (
        *("gradient_penalty", lambda *given: (gradient_penalty.penalty_by_sum(*given), 1.0)),
        *("The penalty is a list or tuple with 2 entries", "has no graph"),
    ),
    "a rate below zero": (
        *("largest_rate", lambda loss, w: -largest_rate.power_iteration(loss, w)),
        *("so that each step goes up the bowl", "0.00 of the border"),
    ),
    "numbers that a graph needs": (
        *("uncut_loss", lambda p, s, w: p.norm(dim=1).mul(-s).exp().mul_(w).sum()),
        *("or a tensor that its graph needs was written to.", "right one"),
    ),
    "a list in a list": (
        *("step_in_backward", lambda model, lr: [step_in_backward.step_by_hook(model, lr)]),
        *("expected a list of the handles", "Your code raised"),
    ),
}


@pytest.mark.parametrize(("exercise", "answer", "said", "false"), TOLD.values(), ids=TOLD)
def test_what_is_said_is_true(exercise, answer, said, false):
    told = "\n".join(verdict_on(exercise, answer, 5).messages)
    assert said in told
    assert false not in told
