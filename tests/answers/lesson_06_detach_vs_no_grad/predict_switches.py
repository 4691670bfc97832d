"""Right and wrong answers to `predict_switches`."""

import torch

SWITCHES = {
    "detached_factor": True,
    "after_the_block": True,
    "made_inside": True,
    "written_inside": True,
    "enabled_in_no_grad": True,
    "enabled_in_inference": False,
    "frozen_live_input": True,
    "frozen_data": False,
    "evaluating": True,
    "clone_then_detach": False,
    "rounded": True,
    "best": False,
}


RIGHT = [SWITCHES, {name: torch.tensor(value) for name, value in SWITCHES.items()}]

MISCONCEIVED = {
    "a cut that spreads": {**SWITCHES, "detached_factor": False, "after_the_block": False},
    "eval switches gradients off": {**SWITCHES, "evaluating": False},
    "frozen cuts": {**SWITCHES, "frozen_live_input": False},
    "inference mode is another no_grad": {**SWITCHES, "enabled_in_inference": True},
}

WRONG = [
    dict.fromkeys(SWITCHES, True),
    dict.fromkeys(SWITCHES, False),
    listing := list(SWITCHES.values()),
    more := {**SWITCHES, "layer": True},
]

GUARDS = {
    "What is `y.requires_grad` at the end?": {"entries": MISCONCEIVED["frozen cuts"]},
    "Give a dict with True or False for each": {"type": listing},
    "and no other entries": {"keys": more},
}
