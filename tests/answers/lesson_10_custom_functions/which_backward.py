"""Right and wrong answers to `which_backward`."""

FOUND = {
    "cube": "F",
    "square": "A",
    "sine": "B",
    "size": "C",
    "ramp": "F",
    "soft": "D",
    "shared": "E",
    "root": "A",
}

RIGHT = [FOUND, {name: letter.lower() for name, letter in FOUND.items()}]

MISCONCEIVED = {
    "gradcheck finds everything": {**FOUND, "sine": "A", "size": "A", "soft": "A", "shared": "A"},
    "a mask cuts": {**FOUND, "ramp": "B"},
    "g is 1": {**FOUND, "square": "F"},
    "the class is ctx": {**FOUND, "shared": "F"},
}

MORE = {**FOUND, "line": "F"}

WRONG = [
    dict.fromkeys(FOUND, "A"),
    dict.fromkeys(FOUND, "F"),
    {**FOUND, "cube": "D"},
    {**FOUND, "root": "C"},
    {**FOUND, "size": "F"},
    {**FOUND, "soft": "F"},
    {**FOUND, "sine": "F"},
    {**FOUND, "shared": "B"},
    {name: "ABCDEF".index(letter) for name, letter in FOUND.items()},
    list(FOUND.values()),
    MORE,
]

GUARDS = {
    "Which of these tests is the first to fail": {"entries": MISCONCEIVED["gradcheck finds everything"]},
    "Give a dict with one letter for each": {"keys": MORE},
}
