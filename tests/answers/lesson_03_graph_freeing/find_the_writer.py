"""Right and wrong answers to `find_the_writer`."""

import torch

from tests.answers.said import said

WRITER = {
    **{"a_saved": 3, "a_wrote": 6, "a_raises": 8},
    **{"b_saved": 3, "b_wrote": 8, "b_raises": 10},
    **{"c_saved": 4, "c_wrote": 6, "c_raises": 7},
    **{"d_saved": None, "d_wrote": None, "d_raises": None},
}

RIGHT = [
    WRITER,
    {**WRITER, "a_saved": "3", "b_raises": " 10"},
    {**WRITER, "c_wrote": torch.tensor(6)},
]

MISCONCEIVED = {
    "a new name is a write": {**WRITER, "b_saved": 4, "b_wrote": 6},
    "every write harms": {**WRITER, "d_saved": 3, "d_wrote": 4, "d_raises": 7},
    "the write raises": {**WRITER, "a_raises": 6, "b_raises": 8, "c_raises": 6},
    "the first line of the victim": {**WRITER, "a_saved": 2, "b_saved": 2, "c_saved": 1},
}

WRONG = [
    said({**WRITER, "a_wrote": 5}, "every write harms"),
    {**WRITER, "c_wrote": 5},
    {**WRITER, "c_saved": 3},
    {**WRITER, "c_wrote": 8},
    {**WRITER, "b_wrote": 7},
    said({**WRITER, "d_saved": 2, "d_wrote": 5, "d_raises": 7}, "a new name is a write"),
    {**WRITER, "d_saved": 0, "d_wrote": 0, "d_raises": 0},
    dict.fromkeys(WRITER, None),
    list(WRITER.values()),
    {name: WRITER[f"{name}_wrote"] for name in "abcd"},
]

GUARDS = {
    "one of its operations saves a tensor": {"entries": WRONG[2]},
    "None for all three": {"entries": MISCONCEIVED["every write harms"]},
}
