"""Right and wrong answers to `predict_second_pass`."""

import torch

SECOND = {
    "separate": True,
    "first_retains": False,
    "second_retains": True,
    "in_one_pass": False,
    "a_third_pass": True,
    "stops_at_h": False,
    "a_again": True,
    "forward_again": False,
    "written_exp": False,
    "written_sin": True,
}


RIGHT = [SECOND, {name: torch.tensor(value) for name, value in SECOND.items()}]

MISCONCEIVED = {
    "the flag of the later pass": {**SECOND, "first_retains": True, "second_retains": False},
    "retained for good": {**SECOND, "a_third_pass": False},
    "two graphs": {**SECOND, "separate": False, "second_retains": False, "a_third_pass": False},
    "every pass frees all": {**SECOND, "stops_at_h": True, "forward_again": True},
    "any write": {**SECOND, "written_exp": True},
}

WRONG = [
    dict.fromkeys(SECOND, True),
    dict.fromkeys(SECOND, False),
    {**SECOND, "first_retains": True, "a_third_pass": False},
    list(SECOND.values()),
    {name: not value for name, value in SECOND.items()},
]

GUARDS = {"Does the last statement of each entry raise an error?": {"entries": MISCONCEIVED["retained for good"]}}
