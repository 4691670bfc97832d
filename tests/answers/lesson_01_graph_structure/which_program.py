"""Right and wrong answers to `which_program`."""

DREW = {"first": "D", "second": "B", "third": "C"}

RIGHT = [DREW, {**DREW, "first": "d", "third": " C "}]

MISCONCEIVED = {
    "one node for each name": {**DREW, "second": "A"},
    "a cut leaves an arrow": {**DREW, "third": "A"},
    "the other way round": {**DREW, "first": "A"},
}

WRONG = [
    {**DREW, "first": "F"},
    {**DREW, "second": "F"},
    {**DREW, "third": "D"},
    {**DREW, "first": 4},
    {"D": "first", "B": "second", "C": "third"},
    ["D", "B", "C"],
    "DBC",
    dict.fromkeys(DREW, "A"),
]

GUARDS = {"Which of the programs drew which picture?": {"entries": MISCONCEIVED["one node for each name"]}}
