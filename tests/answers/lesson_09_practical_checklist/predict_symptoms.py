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
    {**SYMPTOMS, "twice": "Raises"},
    {**SYMPTOMS, "twice": torch.ones(3)},
    list(SYMPTOMS.values()),
]

EQUIVALENT = {
    "RIGHT[1]: reversed(SYMPTOMS.items()) -> SYMPTOMS.items()": "The order of a dict's entries means nothing.",
}
