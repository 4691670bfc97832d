"""Each error of PyTorch's is printed in full in one lesson, where it is taken apart; the others link there."""

import re
from pathlib import Path

import pytest

from course_utils import notebooks

ROOT = Path(__file__).parents[1]
LESSONS = [path for path in notebooks.lessons(ROOT) if path.parent.name == "notebooks"]

# A part of each message that only its full text has, and the lesson that explains it.
HOMES = {
    "a leaf Variable that requires grad is being used in an in-place": "01",
    "can't optimize a non-leaf Tensor": "01",
    "you can only change requires_grad flags of leaf variables": "01",
    "does not require grad and does not have a grad_fn": "02",
    "grad can be implicitly created only for scalar outputs": "02",
    "appears to not have been used in the graph": "02",
    "has been modified by an inplace operation": "03",
    "Trying to backward through the graph a second time": "04",
    "derivative for": "05",
    "will create a reference cycle": "05",
    "Can't call numpy() on Tensor that requires grad": "06",
    "Inference tensors cannot be saved for backward": "06",
    "Detected call of `lr_scheduler.step()` before": "07",
    "The .grad attribute of a Tensor that is not a leaf": "08",
    "can't retain_grad on Tensor that has requires_grad=False": "08",
    "returned nan values in its 0th output": "09",
    "returned an incorrect number of gradients": "10",
    "returned an invalid gradient at index 0": "10",
}
# Where another lesson prints it too, and why: there it reads differently.
ALSO = {
    "has been modified by an inplace operation": {
        "04": "after optimizer.step() its brackets name a weight, transposed"
    },
    "Can't call numpy() on Tensor that requires grad": {"01": "there its advice is what cuts the stem off"},
}


def printed(path: Path) -> str:
    """Return what a notebook's cells printed and raised: not what `predict` and `check` say of the learner's choice."""
    cells = [cell for cell in notebooks.read(path).cells if not re.search(r"^ *(predict|check)\(", cell.source, re.M)]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    texts = [output.get("text", "") + output.get("evalue", "") for output in outputs]
    texts += [str(output.get("data", {}).get("text/plain", "")) for output in outputs]
    return re.sub(r"\s+", " ", " ".join(texts))


@pytest.mark.parametrize("message", HOMES)
def test_a_message_is_printed_in_its_own_lesson_alone(message):
    assert {path.stem[:2] for path in LESSONS if message in printed(path)} <= {HOMES[message], *ALSO.get(message, ())}


@pytest.mark.parametrize("message", HOMES)
def test_the_home_of_a_message_prints_it(message):
    pages = [path for path in notebooks.lessons(ROOT) if path.stem.startswith(HOMES[message])]
    assert any(message in printed(path) for path in pages)
