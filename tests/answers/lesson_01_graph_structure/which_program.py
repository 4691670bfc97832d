"""Right and wrong answers to `which_program`."""

from tests.answers.said import said

DREW = {"first": "D", "second": "B", "third": "C"}

RIGHT = [DREW, {**DREW, "first": "d", "third": " C "}]

MISCONCEIVED = {
    "one node for each name": {**DREW, "second": "A"},
    "a cut leaves an arrow": {**DREW, "third": "A"},
    "the other way round": {**DREW, "first": "A"},
}

WRONG = [
    said({**DREW, "first": "F"}, "the other way round"),
    said({**DREW, "second": "F"}, "one node for each name"),
    said({**DREW, "third": "D"}, "a cut leaves an arrow"),
    {**DREW, "first": 4},
    {"D": "first", "B": "second", "C": "third"},
    ["D", "B", "C"],
    "DBC",
    dict.fromkeys(DREW, "A"),
]

GUARDS = {"Which of the programs drew which picture?": {"entries": MISCONCEIVED["one node for each name"]}}
