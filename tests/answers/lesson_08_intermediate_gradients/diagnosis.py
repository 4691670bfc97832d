"""Right and wrong answers to `diagnosis`."""

DIAGNOSIS = {
    **{"A_block": 3, "A_cause": "saturated", "B_block": 5, "B_cause": "dead", "C_block": 6, "C_cause": "small weights"},
    **{"D_block": 2, "D_cause": "cut", "E_block": "all", "E_cause": "all blocks"},
}


RIGHT = [DIAGNOSIS, dict(reversed(DIAGNOSIS.items()))]

MISCONCEIVED = {
    "one block too early": {name: value - 1 if isinstance(value, int) else value for name, value in DIAGNOSIS.items()},
    "zero is cut": {**DIAGNOSIS, "B_cause": "cut"},
}

WRONG = [
    {name: 3 if name.endswith("block") else "dead" for name in DIAGNOSIS},
    {**DIAGNOSIS, "A_cause": "small weights"},
    {**DIAGNOSIS, "E_block": 0},
    list(DIAGNOSIS.values()),
]

EQUIVALENT = {
    "RIGHT[1]: reversed(DIAGNOSIS.items()) -> DIAGNOSIS.items()": '"Give a dict": a dict has no order to get right.',
}

GUARDS = {"Where does the gradient get lost, and why?": {"entries": MISCONCEIVED["one block too early"]}}
