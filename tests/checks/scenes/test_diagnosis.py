"""The tables that lesson 08 gives to a learner are those of the networks that the check measures."""

from pathlib import Path

import pytest
import torch

from course_utils import notebooks
from course_utils.checks.scenes.lesson_08_intermediate_gradients.diagnosis import (
    batch_for_patients,
    patients,
    score_of_patients,
)

MASTER = notebooks.read(Path(__file__).parents[3] / "solutions" / "08_intermediate_gradients.ipynb")


def given() -> dict[str, dict[str, list[float | None]]]:
    (cell,) = (cell for cell in MASTER.cells if "given-diagnosis" in cell.metadata.get("tags", ()))
    names: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    exec(cell.source.split("\n\nfigure, ")[0], names)
    return names["examined"]


@pytest.mark.parametrize("name", patients())
def test_the_given_tables_are_those_of_the_patients(name):
    h, outputs = batch_for_patients(), []
    for block in patients()[name]:
        h = block(h)
        outputs.append(h)
    gradients = torch.autograd.grad(score_of_patients(h), outputs, allow_unused=True)
    table = given()[name]
    assert table["spread"] == pytest.approx([output.std().item() for output in outputs], rel=0.5)
    assert table["zeros (%)"] == pytest.approx(
        [100 * (output == 0).double().mean().item() for output in outputs], abs=1
    )
    assert table["> 0.99 (%)"] == pytest.approx(
        [100 * (output.abs() > 0.99).double().mean().item() for output in outputs], abs=1
    )
    norms = [None if gradient is None else gradient.norm().item() for gradient in gradients]
    assert [norm is None for norm in table["gradient"]] == [norm is None for norm in norms]
    assert [norm or 0 for norm in table["gradient"]] == pytest.approx([norm or 0 for norm in norms], rel=0.5)


def test_no_import_of_the_exercises_shows_where_answers_live():
    assert not [cell.id for cell in MASTER.cells if "import" in cell.source and "course_utils.checks" in cell.source]
