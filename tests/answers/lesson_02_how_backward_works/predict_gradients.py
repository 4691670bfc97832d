"""Right and wrong answers to `predict_gradients`."""

import torch

from tests.answers.said import said

PREDICTED = {
    "fan_out": 20,
    "two_passes": 17,
    "vector_seed": 60,
    "half_seed": 13.5,
    "broadcast": 10,
    "tie": 0.5,
    "after_grad": None,
    "left_out": None,
}


def predicted(**changed):
    return {**PREDICTED, **changed}


RIGHT = [
    PREDICTED,
    dict(zip(PREDICTED, (20.0, 17, torch.tensor(60.0), 13.5, 10, 0.5, None, None), strict=True)),
]

MISCONCEIVED = {
    "one branch only": predicted(fan_out=6),
    "the second pass replaces": predicted(two_passes=5),
    "the seed is ignored": predicted(vector_seed=6, half_seed=27),
    "nothing is zero": predicted(after_grad=0, left_out=0),
    "a pass writes everywhere": predicted(after_grad=6, left_out=2),
    "a tie goes to one": predicted(tie=1),
}

WRONG = [
    said(predicted(fan_out=14), "one branch only"),
    predicted(broadcast=2),
    predicted(left_out="None"),
    predicted(vector_seed=[4, 60, 1000]),
    list(PREDICTED.values()),
    predicted(fan_out=torch.tensor([20.0])),
    predicted(note=1),
    *(said(predicted(fan_out=some), "one branch only") for some in (8, 12)),
    said(predicted(left_out=7), "a pass writes everywhere"),
    said(predicted(after_grad=torch.tensor(0.0)), "nothing is zero"),
    predicted(after_grad=False),
    predicted(tie=True),
]

GUARDS = {
    "Say what each entry will be": {"entries": WRONG[1]},
    "`None` where there is none": {"texts": WRONG[2], "entries": MISCONCEIVED["nothing is zero"]},
    "Give a dict with the eight keys and no other": {"type": WRONG[4], "keys": WRONG[6]},
    "For each give one number, or `None` where there is none; no list and no tensor with dimensions.": {
        "several numbers": WRONG[5]
    },
}
