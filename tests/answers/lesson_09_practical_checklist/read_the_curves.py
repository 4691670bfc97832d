"""Right and wrong answers to `read_the_curves`."""

RUNS = {"run_1": "F", "run_2": "B", "run_3": "E", "run_4": "A", "run_5": "G", "run_6": "D"}

RIGHT = [RUNS, {name: letter.lower() for name, letter in RUNS.items()}]

MISCONCEIVED = {
    "swinging is a large rate": {**RUNS, "run_2": "C"},
    "level is converged": {**RUNS, "run_1": "A"},
    "standing still is a small rate": {**RUNS, "run_3": "D", "run_6": "E"},
    "teeth are piled up gradients": {**RUNS, "run_5": "B", "run_2": "C"},
}

MORE = {**RUNS, "run_7": "A"}

WRONG = [
    dict.fromkeys(RUNS, "A"),
    {**RUNS, "run_6": "C"},
    {**RUNS, "run_6": "A"},
    {**RUNS, "run_4": "F"},
    {**RUNS, "run_1": "C"},
    {**RUNS, "run_5": "F"},
    {name: "ABCDEFG".index(letter) for name, letter in RUNS.items()},
    list(RUNS.values()),
    "".join(RUNS.values()),
    MORE,
]

GUARDS = {
    "Which repair does it need": {"entries": MISCONCEIVED["level is converged"]},
    "Give a dict with one letter for each run": {"keys": MORE},
}
