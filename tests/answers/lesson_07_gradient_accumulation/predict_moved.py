"""Right and wrong answers to `predict_moved`."""

import torch

MOVES = {
    "sgd_none": False,
    "sgd_zero": False,
    "momentum_none": False,
    "momentum_zero": True,
    "decay_none": False,
    "decay_zero": True,
    "adam_none": False,
    "adam_zero": True,
    "adam_fresh_zero": False,
    "adamw_fresh_zero": True,
    "frozen_left": True,
    "frozen_none": False,
}


RIGHT = [MOVES, {name: torch.tensor(value) for name, value in MOVES.items()}]

MISCONCEIVED = {
    "zero moves nothing": {
        **MOVES,
        **dict.fromkeys(("momentum_zero", "decay_zero", "adam_zero", "adamw_fresh_zero"), False),
    },
    "None moves": {**MOVES, **dict.fromkeys(("momentum_none", "decay_none", "adam_none"), True)},
    "frozen is safe": {**MOVES, "frozen_left": False},
}

WRONG = [
    dict.fromkeys(MOVES, True),
    dict.fromkeys(MOVES, False),
    list(MOVES.values()),
    {name: int(value) for name, value in MOVES.items()},
]

GUARDS = {"Does `w` change in the **last** step?": {"entries": MISCONCEIVED["frozen is safe"]}}
