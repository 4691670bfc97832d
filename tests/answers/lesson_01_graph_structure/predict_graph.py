"""Right and wrong answers to `predict_graph`."""

import torch

FACTS = {"grad_fn": "SumBackward0", "nodes": 8, "leaves": 2, "nones": 1, "edges_into_tanh": 3, "paths": 6}


RIGHT = [FACTS, {**FACTS, "nodes": torch.tensor(8)}]

MISCONCEIVED = {
    "a tree": {**FACTS, "nodes": 16, "leaves": 6, "edges_into_tanh": 1},
    "leaves forgotten": {**FACTS, "nodes": 6},
    "constants counted": {**FACTS, "nodes": 9, "leaves": 3, "nones": 0},
    "edges as nodes": {**FACTS, "edges_into_tanh": 2, "paths": 4},
}

WRONG = [
    {**FACTS, "grad_fn": "AddBackward0"},
    {**FACTS, "paths": 2},
    {**FACTS, "nones": 0},
    {**FACTS, "edges_into_tanh": 4},
    {**FACTS, "nodes": "8"},
    {**FACTS, "grad_fn": "SumBackward"},
    {**FACTS, "grad_fn": "<SumBackward0>"},
    8,
    {**FACTS, "edges": 9},
    {**FACTS, "nones": True},
]

GUARDS = {
    "Predict six facts about the graph of `y`": {"entries": WRONG[0]},
    "in a dict with these six keys and no other": {"type": WRONG[7], "keys": WRONG[8]},
    'as a text such as `"ExpBackward0"`': {"kind of grad_fn": WRONG[5]},
    "how many nodes `trace(y)` lists": {"kind of nodes": WRONG[4]},
    "All but the first are whole numbers, and no True or False": {"kind of nones": WRONG[9]},
}
