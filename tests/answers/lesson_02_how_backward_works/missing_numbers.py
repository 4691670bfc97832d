"""Right and wrong answers to `missing_numbers`."""

import torch

from tests.answers.said import said

NUMBERS = {"A": 10, "B": -24, "C": 34, "D": 136}


def numbers(**changed):
    return {**NUMBERS, **changed}


RIGHT = [
    NUMBERS,
    dict(reversed(NUMBERS.items())),
    {"A": 10.0, "B": torch.tensor(-24.0), "C": torch.tensor(34), "D": 136.0},
]

MISCONCEIVED = {
    "the factor alone": numbers(A=5, C=29, D=4),
    "a factor's own value": numbers(A=24, C=48, D=144),
    "no factor": numbers(A=2, C=26, D=104),
    "one use counts": numbers(C=24, D=96),
    "uses are multiplied": numbers(C=240, D=960),
    "the sign is lost": numbers(B=24),
}

WRONG = [
    said(numbers(D=4), "the factor alone"),
    said(numbers(A=5, D=4), "the factor alone"),
    said(numbers(D=102), "a factor's own value"),
    said(numbers(A=24), "a factor's own value"),
    said(numbers(C=10, D=40), "one use counts"),
    said(numbers(D=96), "one use counts"),
    said(numbers(C=240), "uses are multiplied"),
    said(numbers(A=5, C=29, D=116), "the factor alone"),
    said(numbers(A=24, C=48, D=192), "a factor's own value"),
    numbers(A=5, B=24),  # two ideas at once
    numbers(A=-10),
    numbers(C=-14, D=-56),  # the sign that belongs to c given to p
    numbers(A=12),
    numbers(B=None),
    numbers(B="-24"),
    numbers(C=[10, 24]),
    numbers(D=torch.tensor([136.0])),
    list(NUMBERS.values()),
    {letter: number for letter, number in NUMBERS.items() if letter != "C"},
    numbers(E=0),
    dict.fromkeys(NUMBERS, 0),
    said(numbers(D=34), "no factor"),
]

EQUIVALENT = {
    "RIGHT[1]: reversed(NUMBERS.items()) -> NUMBERS.items()": "The order of a dict's entries means nothing.",
}

GUARDS = {
    "Which numbers belong there?": {"entries": MISCONCEIVED["the sign is lost"]},
    "Give a dict with one number for each of the four letters": {
        "type": WRONG[17],
        "keys": WRONG[18],
        "kind": WRONG[14],
    },
}
