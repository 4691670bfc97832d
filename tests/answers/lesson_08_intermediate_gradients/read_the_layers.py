"""Right and wrong answers to `read_the_layers`."""

REPAIRS = {"A": "f", "B": "b", "C": "a", "D": "d", "E": "c", "F": "e"}

RIGHT = [REPAIRS, dict(reversed(REPAIRS.items())), {name: letter.upper() for name, letter in REPAIRS.items()}]

MISCONCEIVED = {
    "frozen and cut exchanged": {**REPAIRS, "B": "c", "E": "b"},
    "zero is none": {**REPAIRS, "D": "c"},
    "one tall bar is no fault": {**REPAIRS, "F": "a"},
    "a steady fall is one small layer": {**REPAIRS, "A": "e"},
}

NUMBERED = {name: "abcdef".index(letter) + 1 for name, letter in REPAIRS.items()}
MORE = {**REPAIRS, "G": "a"}

WRONG = [
    dict.fromkeys(REPAIRS, "a"),
    dict.fromkeys(REPAIRS, "f"),
    {**REPAIRS, "F": "f"},  # all bars are small, so the activation is to blame
    {**REPAIRS, "A": "d", "D": "f"},
    {**REPAIRS, "C": "f"},
    NUMBERED,
    "".join(REPAIRS.values()),
    list(REPAIRS.values()),
    MORE,
    {**REPAIRS, "A": ...},
]

EQUIVALENT = {
    "RIGHT[1]: reversed(REPAIRS.items()) -> REPAIRS.items()": "The order of a dict's entries means nothing.",
}

GUARDS = {
    "Which repair does it need": {"entries": MISCONCEIVED["zero is none"]},
    "Give a dict with one letter for each network": {"letters": NUMBERED, "keys": MORE},
}
