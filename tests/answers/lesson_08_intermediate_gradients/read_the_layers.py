"""Right and wrong answers to `read_the_layers`."""

REPAIRS = {"net_1": "F", "net_2": "B", "net_3": "A", "net_4": "D", "net_5": "C", "net_6": "E"}

RIGHT = [REPAIRS, dict(reversed(REPAIRS.items())), {name: letter.lower() for name, letter in REPAIRS.items()}]

MISCONCEIVED = {
    "frozen and cut exchanged": {**REPAIRS, "net_2": "C", "net_5": "B"},
    "zero is none": {**REPAIRS, "net_4": "C"},
    "one tall bar is no fault": {**REPAIRS, "net_6": "A"},
    "a steady fall is one small layer": {**REPAIRS, "net_1": "E"},
}

NUMBERED = {name: "ABCDEF".index(letter) + 1 for name, letter in REPAIRS.items()}
MORE = {**REPAIRS, "net_7": "A"}

WRONG = [
    dict.fromkeys(REPAIRS, "A"),
    dict.fromkeys(REPAIRS, "F"),
    {**REPAIRS, "net_6": "F"},  # all bars are small, so the activation is to blame
    {**REPAIRS, "net_1": "D", "net_4": "F"},
    {**REPAIRS, "net_3": "F"},
    NUMBERED,
    "".join(REPAIRS.values()),
    list(REPAIRS.values()),
    MORE,
    {**REPAIRS, "net_1": ...},
]

EQUIVALENT = {
    "RIGHT[1]: reversed(REPAIRS.items()) -> REPAIRS.items()": "The order of a dict's entries means nothing.",
}

GUARDS = {
    "Which repair does it need": {"entries": MISCONCEIVED["zero is none"]},
    "Give a dict with one letter for each network": {"keys": MORE},
}
