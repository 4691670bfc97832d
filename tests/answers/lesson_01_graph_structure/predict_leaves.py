"""Right and wrong answers to `predict_leaves`."""

LEAVES = {
    **{"plain": True, "product": False, "updated": True, "cut": True},
    **{"weight": True, "double": False, "same": True, "late": True},
}


RIGHT = [LEAVES, dict(reversed(LEAVES.items()))]

MISCONCEIVED = {
    "only with requires_grad": {**LEAVES, "plain": False, "updated": False, "cut": False},
    "only the first": {**dict.fromkeys(LEAVES, False), "plain": True},
    "to() always converts": {**LEAVES, "same": False},
}

WRONG = [
    dict.fromkeys(LEAVES, True),
    dict.fromkeys(LEAVES, 1),
    {**LEAVES, "late": ...},
    list(LEAVES),
    {**LEAVES, "late": "True"},
    {**LEAVES, "w": True},
]

EQUIVALENT = {
    "RIGHT[1]: reversed(LEAVES.items()) -> LEAVES.items()": '"for each": a dict has no order to get right.',
}

GUARDS = {
    "Which of them name a leaf?": {"entries": MISCONCEIVED["only the first"]},
    "Give a dict with these eight names and no other": {"complete": WRONG[2], "type": WRONG[3], "keys": WRONG[5]},
    "for each, as True or False": {"flags": WRONG[1]},
}
