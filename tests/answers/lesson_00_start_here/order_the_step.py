"""Right and wrong answers to `order_the_step`."""

from tests.answers.said import said

RIGHT = [
    ["E", "C", "F", "B", "A", "D"],
    ("C", "F", "E", "D", "B", "A"),
    "CFDBAE",
    "c, f, b, d, a, e",
    "E -> C -> F -> D -> B -> A",
]

MISCONCEIVED = {
    "cleared before the step": "CFBEAD",
    "step before backward": ["E", "C", "F", "A", "B", "D"],
    "noted before it is there": ["E", "C", "D", "F", "B", "A"],
}

LEAVES_OUT = "CFBAD"
BACKWARD_FIRST = ["E", "B", "C", "F", "D", "A"]
LOSS_FIRST = "EFCBDA"

WRONG = [
    LEAVES_OUT,
    BACKWARD_FIRST,
    LOSS_FIRST,
    said("ACFDBE", "step before backward"),
    said("AECFDB", "step before backward"),
    said("CDFBEA", "noted before it is there"),
    said("ABCDEF", "noted before it is there"),
    "ECFBADD",
    ["E", "C", "F", "B", "A", "G"],
    ["E", "C", "F", "B", "A", 4],
    {"E": 1, "C": 2, "F": 3, "B": 4, "A": 5, "D": 6},
    [3, 4, 6, 2, 1, 5],
    [],
    6,
]

GUARDS = {
    "all six letters, each once": {"letters": LEAVES_OUT},
    "no line uses a name that no line has made yet": {"names": BACKWARD_FIRST},
    "moves the weights, by the gradient of its own batch's loss and by nothing else": {
        "steps": MISCONCEIVED["cleared before the step"]
    },
}
