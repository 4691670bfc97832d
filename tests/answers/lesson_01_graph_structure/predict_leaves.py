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
]

EQUIVALENT = {
    "RIGHT[1]: reversed(LEAVES.items()) -> LEAVES.items()": '"Give for each name": a dict has no order to get right.',
}

GUARDS = {
    "Which of them are leaves?": {"entries": MISCONCEIVED["only the first"]},
    "Give for each name, as True or False": {"complete": WRONG[2], "flags": WRONG[1], "type": WRONG[3]},
}
