"""Right and wrong answers to `predict_second_backward`."""

import torch

from tests.answers.said import said

SECOND = {
    "plus_one": False,
    "exp": True,
    "mean_of_rows": False,
    "times_three": True,
    "times_data": True,
    "detached_exp": False,
    "new_forward": False,
    "shared_exp": True,
    "shared_sum": False,
    "upper_part_first": False,
}


RIGHT = [SECOND, {name: torch.tensor(value) for name, value in SECOND.items()}]

MISCONCEIVED = {
    "only once": {
        **SECOND,
        **{"plus_one": True, "mean_of_rows": True, "detached_exp": True},
    },
    "constants are free": {**SECOND, "times_three": False, "times_data": False},
    "any shared node": {**SECOND, "shared_sum": True},
}

WRONG = [
    *(dict.fromkeys(SECOND, True), dict.fromkeys(SECOND, False), list(SECOND.values())),
    *(said({**SECOND, product: False}, "constants are free") for product in ("times_three", "times_data")),
    {name: str(value) for name, value in SECOND.items()},
]

GUARDS = {
    "Will the last statement raise, because saved tensors are gone?": {"entries": MISCONCEIVED["any shared node"]}
}
