"""Right and wrong answers to `order_the_window`."""

from tests.answers.said import said

RIGHT = [
    ["E", "D", "F", "G", "B", "A", "H", "C"],
    "EGBDFAHC",
    ("D", "E", "F", "G", "B", "A", "H", "C"),
    "g, e, b, d, f, a, h, c",
]

MISCONCEIVED = {
    "clipped before the sum is complete": "EDFAGBHC",
    "stepped before the sum is complete": "EDFAHGBC",
    "clipped after the step": "EDFGBHAC",
    "cleared within the window": "DFEGBAHC",
    "cleared at the end only": "DFGBAHCE",
    "scheduler before optimizer": "EDFGBACH",
    "both graphs at a time": "EDGFBAHC",
}

LEAVES_OUT = "EDFGBAH"
PASS_FIRST = "EFDGBAHC"

WRONG = [
    LEAVES_OUT,
    PASS_FIRST,
    "ABCDEFGH",
    "EDFGBAHC"[::-1],
    "EDGBFAHCA",
    "EDFGBAHX",
    said("ADFGBEHC", "clipped before the sum is complete", "cleared within the window"),
    [1, 2, 3, 4, 5, 6, 7, 8],
    [],
    8,
    said("EDFGAHBC", "stepped before the sum is complete"),
    said("HEDFGBAC", "stepped before the sum is complete", "clipped after the step"),
]

GUARDS = {
    "all eight letters, each once": {"letters": LEAVES_OUT},
    "no line uses a name that no line has made yet": {"names": PASS_FIRST},
    "by the clipped gradient of its mean loss": {"weights": MISCONCEIVED["clipped after the step"]},
    "what the graph of one micro-batch saved is freed before the loss of the other is computed": {
        "one graph": MISCONCEIVED["both graphs at a time"]
    },
}
