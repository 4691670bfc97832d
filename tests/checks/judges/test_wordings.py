"""Sentences of a verdict are true of the answers that get them."""

import pytest

from tests.answers.lesson_01_graph_structure import connected_loss
from tests.answers.lesson_02_how_backward_works import jacobian, vjp_matmul
from tests.answers.lesson_03_graph_freeing import fewest_bytes
from tests.answers.lesson_04_retain_graph import train_chunks
from tests.checks.verdicts import verdict_on

TOLD = {
    "v with its rows and columns swapped": (
        *("vjp_matmul", vjp_matmul.WRONG[-3]),
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
}


@pytest.mark.parametrize(("exercise", "answer", "said", "false"), TOLD.values(), ids=TOLD)
def test_what_is_said_is_true(exercise, answer, said, false):
    told = "\n".join(verdict_on(exercise, answer, 5).messages)
    assert said in told
    assert false not in told
