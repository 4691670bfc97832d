"""Right and wrong answers to `predict_symptoms`."""

import torch

from tests.answers.said import said

SYMPTOMS = {
    "zero_between": "stands still",
    "rewrapped": "stands still",
    "under_no_grad": "raises",
    "in_eval": "moves",
    "rounded": "stands still",
    "twice": "raises",
    "scheduler_first": "warns",
    "replaced": "stands still",
    "wrong_shape": "warns",
    "one_frozen": "moves",
    "hard_choice": "raises",
}


RIGHT = [SYMPTOMS, dict(reversed(SYMPTOMS.items()))]

MISCONCEIVED = {
    "a new leaf is a repair": {**SYMPTOMS, "rewrapped": "moves"},
    "eval() is no_grad": {**SYMPTOMS, "in_eval": "raises"},
    "no gradient is an error": {**SYMPTOMS, "rounded": "raises"},
    "the optimizer follows the model": {**SYMPTOMS, "replaced": "moves"},
}

WRONG = [
    said(dict.fromkeys(SYMPTOMS, "raises"), "eval() is no_grad", "no gradient is an error"),
    dict.fromkeys(SYMPTOMS, True),
    capital := {**SYMPTOMS, "twice": "Raises"},
    {**SYMPTOMS, "twice": torch.ones(3)},
    listing := list(SYMPTOMS.values()),
    unwarned := {**SYMPTOMS, "wrong_shape": "moves"},
    unmoved := {**SYMPTOMS, "one_frozen": "stands still"},
    short := {name: word for name, word in SYMPTOMS.items() if name != "twice"},
]

EQUIVALENT = {
    "RIGHT[1]: reversed(SYMPTOMS.items()) -> SYMPTOMS.items()": "The order of a dict's entries means nothing.",
}

GUARDS = {
    "Give a dict": {"type": listing},
    "for each entry": {"keys": short},
    "with one of four words": {"words": capital},
    '"raises"` if an error comes': {"entries": MISCONCEIVED["eval() is no_grad"]},
    '"warns"` if there is no error and PyTorch warns': {"entries": unwarned},
    '"stands still"` if no tensor that the optimizer holds changes its numbers': {
        "entries": MISCONCEIVED["a new leaf is a repair"]
    },
    '"moves"` if one does': {"entries": unmoved},
}
