"""Right and wrong answers to `find_the_cut`."""

CUT = {"a": None, "b": 3, "c": 7, "d": 6, "e": None}

RIGHT = [CUT, {"a": None, "b": "3", "c": " 7", "d": 6, "e": None}]

MISCONCEIVED = {
    "every detach cuts": {**CUT, "a": 4, "e": 5},
    "every no_grad cuts": {**CUT, "a": 5, "d": 4},
    "eval or freezing cuts": {**CUT, "c": 5},
    "a new leaf mends": {**CUT, "d": None},
}

WRONG = [
    {**CUT, "a": 6},
    {**CUT, "b": 4},
    {**CUT, "c": 6},
    {**CUT, "d": 5},
    {**CUT, "e": 3},
    {**CUT, "a": 0, "e": 0},
    dict.fromkeys(CUT),
    {"a": 4, "b": 6, "c": 5, "d": 6, "e": 5},
    {"a": 9, "b": 8, "c": 10, "d": 8, "e": 7},
    list(CUT.values()),
    7,
]

GUARDS = {
    "None, if `w` gets a gradient": {"entries": MISCONCEIVED["every detach cuts"]},
    "the number of the line": {"entries": MISCONCEIVED["a new leaf mends"]},
}
