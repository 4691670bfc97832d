"""Right and wrong answers to `predict_second_order`."""

import torch

from tests.answers.said import said

SECOND = {
    "recorded": 27.0,
    "retained": "error",
    "two_backwards": 40.5,
    "recorded_then_again": 13.5,
    "third": 36.0,
    "line": "error",
    "relu": 0.0,
    "product": 54.0,
    "product_unrecorded": 13.5,
    "square": 729.0,
}


RIGHT = [SECOND, {**SECOND, "product": torch.tensor(54.0), "relu": 0}]

MISCONCEIVED = {
    "another word": {**SECOND, "retained": None, "line": "Error"},
    "retaining records": {**SECOND, "retained": 40.5},
    "nothing is added": {**SECOND, "two_backwards": 27},
    "a constant has a graph": {**SECOND, "line": 0},
    "a recorded gradient is a constant": {**SECOND, "product": 13.5},
}

WRONG = [
    said({**SECOND, "retained": 27.0}, "retaining records"),
    {**SECOND, "relu": "error"},
    {**SECOND, "recorded_then_again": "error"},
    dict.fromkeys(SECOND, "error"),
    dict.fromkeys(SECOND, 27.0),
    listing := list(SECOND.values()),
    short := {name: value for name, value in SECOND.items() if name != "line"},
    rounded := {**SECOND, "third": 36.1},
    unasked := {**SECOND, "product_unrecorded": "error"},
]

GUARDS = {
    "Each entry starts from these lines": {"type": listing, "keys": short},
    "Give the value of the last expression as a number": {"entries": unasked},
    'or the text `"error"` where a statement raises': {"entries": MISCONCEIVED["a constant has a graph"]},
    "Four digits will do.": {"entries": rounded},
}
