"""Right and wrong answers to `why_second_time`."""

from tests.answers.said import said

REPAIRS = {"losses": "A", "heads": "C", "state": "C", "scale": "B", "cell": "D", "apart": "E"}

RIGHT = [REPAIRS, {**REPAIRS, "losses": "a", "cell": " d"}]

MISCONCEIVED = {
    "the flag everywhere": dict.fromkeys(REPAIRS, "E"),
    "never the flag": {**REPAIRS, "apart": "B"},
    "added what is held apart": {**REPAIRS, "heads": "A"},
    "cut where it should learn": {**REPAIRS, "scale": "C"},
}

WRONG = [
    said({**REPAIRS, "losses": "E"}, "the flag everywhere"),
    said({**REPAIRS, "state": "E"}, "the flag everywhere"),
    {**REPAIRS, "losses": "B"},
    {**REPAIRS, "state": "A"},
    {**REPAIRS, "scale": "A"},
    {**REPAIRS, "cell": "B"},
    {**REPAIRS, "heads": "D"},
    {**REPAIRS, "losses": ["A"]},
    list(REPAIRS.values()),
    "ACCBDE",
    said({**REPAIRS, "state": "E", "cell": "e "}, "the flag everywhere"),
    said({**REPAIRS, "apart": "C"}, "cut where it should learn"),
    {"A": "losses", "C": "heads", "B": "scale", "D": "cell", "E": "apart"},
]

GUARDS = {
    "gives what is wanted": {"entries": WRONG[3]},
    "in one backward pass": {"entries": WRONG[2]},
}
