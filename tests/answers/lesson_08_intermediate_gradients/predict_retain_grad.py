"""Right and wrong answers to `predict_retain_grad`."""

TABLE = {
    "never": None,
    "before_use": 4.0,
    "after_use": 4.0,
    "too_late": None,
    "two_uses": 9.0,
    "same_graph_twice": 8.0,
    "second_loss": "error",
    "rebound": None,
    "in_place": 5.0,
    "detached": "error",
    "by_function": 4.0,
    "with_hook": 40.0,
}


RIGHT = [TABLE, {name: int(v) if isinstance(v, float) else v for name, v in TABLE.items()}]

MISCONCEIVED = {
    "before the first use": {**TABLE, "after_use": None},
    "retain_grad is retain_graph": {**TABLE, "second_loss": 9},
    "reading raises": {**TABLE, "never": "error", "too_late": "error", "rebound": "error"},
    "the last pass wins": {**TABLE, "same_graph_twice": 4},
    "backward only": {**TABLE, "by_function": None},
}

WRONG = [
    dict.fromkeys(TABLE),
    dict.fromkeys(TABLE, "error"),
    dict.fromkeys(TABLE, 4.0),
    {**TABLE, "in_place": 20.0},
    {**TABLE, "with_hook": 4.0},
    {**TABLE, "two_uses": 5.0},
    {**TABLE, "never": 0.0},
]

EQUIVALENT = {
    "RIGHT[1]: isinstance(v, float) -> False": '"Each value is a number": 4.0 is as good as 4.',
}

GUARDS = {"What is `h.grad` at the end?": {"entries": MISCONCEIVED["backward only"]}}
