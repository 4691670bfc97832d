"""Right and wrong answers to `predict_alive`."""

ALIVE = {
    "memory_del": True,
    "memory_of_c": False,
    "memory_backward": False,
    "memory_retain": True,
    "memory_one_number": True,
    "node_backward": True,
    "node_item": False,
    "node_total": True,
    "node_detach": False,
    "node_report": True,
}


RIGHT = [ALIVE, ALIVE | {}]

MISCONCEIVED = {
    "backward deletes the graph": {**ALIVE, "node_backward": False},
    "del deletes memory": {**ALIVE, "memory_del": False, "memory_retain": False},
    "a small view is small": {**ALIVE, "memory_one_number": False},
    "every result is saved": {**ALIVE, "memory_of_c": True},
}

WRONG = [dict.fromkeys(ALIVE, True), dict.fromkeys(ALIVE, False), {**ALIVE, "node_total": 1}]

GUARDS = {"Is the thing in question still alive?": {"entries": MISCONCEIVED["a small view is small"]}}
