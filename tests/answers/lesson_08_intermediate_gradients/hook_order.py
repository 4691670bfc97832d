"""Right and wrong answers to `hook_order`."""

ORDER = ["forward", "output", "layer, before", "weight", "weight stored", "layer", "input"]


RIGHT = [ORDER, tuple(ORDER)]

MISCONCEIVED = {
    "as registered": [
        *("input", "weight stored", "weight", "layer", "forward", "layer, before", "output"),
    ],
    "the layer before its weight": [
        *("forward", "output", "layer, before", "layer", "weight", "weight stored", "input"),
    ],
    "stored first": [
        *("forward", "output", "layer, before", "weight stored", "weight", "layer", "input"),
    ],
}

WRONG = [ORDER[::-1], ORDER[:-1], [*ORDER, "input"], [], [1, 2], ", ".join(ORDER), set(ORDER)]

GUARDS = {
    "all seven names, in the order in which the hooks run": {"order": MISCONCEIVED["stored first"], "names": WRONG[1]}
}
