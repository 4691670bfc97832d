"""Right and wrong answers to `predict_functions`."""

PREDICTED = {
    "as_it_should": "right",
    "no_return": "nothing",
    "g_left_out": "wrong",
    "summed": "raises",
    "in_a_list": "raises",
    "one_too_few": "raises",
    "none_too_many": "right",
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

WRONG = [dict.fromkeys(PREDICTED, "raises"), dict.fromkeys(PREDICTED, True), list(PREDICTED)]

EQUIVALENT = {
    "RIGHT[1]: reversed(PREDICTED.items()) -> PREDICTED.items()": "The order of a dict's entries means nothing.",
}
