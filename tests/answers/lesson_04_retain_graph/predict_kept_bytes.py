"""Right and wrong answers to `predict_kept_bytes`."""

from tests.answers.said import said

BYTES = {
    "nothing": 1200,
    "a_frees": 400,
    "a_retains": 1200,
    "a_retains_b_frees": 800,
    "b_retains_a_frees": 400,
    "in_one_pass": 0,
    "down_to_h": 800,
    "without_a": 800,
}


RIGHT = [BYTES, dict(zip(BYTES, map(float, BYTES.values()), strict=True))]

MISCONCEIVED = {
    "the last pass clears all": {**BYTES, "a_retains_b_frees": 0, "b_retains_a_frees": 0},
    "counted by node": {**BYTES, "nothing": 1600, "a_retains": 1600},
    "h survives": {**BYTES, "a_frees": 800, "b_retains_a_frees": 800},
    "not 400 bytes": {name: 2 * count for name, count in BYTES.items()},
}

WRONG = [
    dict.fromkeys(BYTES, 0),
    dict.fromkeys(BYTES, 1200),
    {**BYTES, "without_a": 1200},
    {**BYTES, "nothing": 1600},
    {name: str(count) for name, count in BYTES.items()},
    said({name: count / 400 for name, count in BYTES.items()}, "not 400 bytes"),
    said({name: count / 1024 for name, count in BYTES.items()}, "not 400 bytes"),
    {**BYTES, "nothing": 1600, "a_retains": 1600, "a_retains_b_frees": 1200},  # sin thought to save its result
    {**BYTES, "nothing": 1600, "a_retains": 1600, "down_to_h": 1200, "without_a": 1200},  # exp thought to save x
]

GUARDS = {"How many bytes does `saved` report afterwards?": {"entries": MISCONCEIVED["counted by node"]}}
