"""Right and wrong answers to `predict_functions`."""

PREDICTED = {
    "as_it_should": "right",
    "no_return": "nothing",
    "g_left_out": "wrong",
    "in_a_list": "raises",
    "one_too_few": "raises",
    "not_summed": "right",
    "saved_then_written": "raises",
    "on_ctx_then_written": "wrong",
}


RIGHT = [PREDICTED, dict(reversed(PREDICTED.items()))]

MISCONCEIVED = {
    "None is an error": {**PREDICTED, "no_return": "raises"},
    "shapes must be equal": {**PREDICTED, "not_summed": "raises"},
    "ctx checks versions": {**PREDICTED, "on_ctx_then_written": "raises"},
}

WRONG = [
    dict.fromkeys(PREDICTED, "raises"),
    dict.fromkeys(PREDICTED, True),
    listing := list(PREDICTED),
    other_word := {**PREDICTED, "one_too_few": "error"},
    unseen := {**PREDICTED, "no_return": "right"},
    too_right := {**PREDICTED, "g_left_out": "right"},
    short := {name: word for name, word in PREDICTED.items() if name != "one_too_few"},
]

EQUIVALENT = {
    "RIGHT[1]: reversed(PREDICTED.items()) -> PREDICTED.items()": "The order of a dict's entries means nothing.",
}

GUARDS = {
    "Each entry is a Function `F`": {"type": listing, "keys": short},
    '`"right"` if it is the derivative of what the forward computed': {"entries": too_right},
    '`"wrong"` if it holds other numbers': {"entries": MISCONCEIVED["ctx checks versions"]},
    '`"nothing"` if it is None or zero': {"entries": unseen},
    '`"raises"` if `backward()` raises': {"entries": MISCONCEIVED["shapes must be equal"], "words": other_word},
}
