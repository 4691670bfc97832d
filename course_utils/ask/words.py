"""The words of a question or an entry, as both are searched: names in their parts, short forms written out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

Names = dict[str, list[str]]  # a name in lower case and in one, and its words

# Words that say nothing about what is asked, what contractions leave behind, and the parts of PyTorch's own name.
_COMMON_WORDS = """
    a about also an and any anyone anything are aren as at be become becomes been being between bug but by can
    cannot cant confused correct correctly could did didn do does doesn don dont due during exactly example explain
    feature for from get gets getting give gives go goes had has have help how i if in into is isn issue it its just
    like ll make makes me more my need now of on or other our please possible problem py pytorch query question re
    regarding request right runtime s seems should so solve some someone something still t than that the their them
    then there these thing things this to torch trying u understand use using ve vs want was way we were what when
    where which while who why will with won work works would wrt you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())

# One of these after a dot or before a bracket is code: `torch.where`, `x.to(device)`.
_CALLED = re.compile(r"(?<=\.)[a-z]+\b|\b[a-z]+(?=\()")

# Short forms with points, whose letters would count as words.
_POINTED = re.compile(r"\b(?:w\.r\.t|i\.e|e\.g)\b", re.IGNORECASE)

# Short forms and other spellings, and what entries call the same.
_SAME = {
    short: words.split()
    for short, words in {
        "1st": "first",
        "2nd": "second",
        "amp": "mixed precision",
        "backprop": "backward",
        "backpropagate": "backward",
        "backpropagation": "backward",
        "bn": "batch norm",
        "calculate": "compute",
        "calculating": "compute",
        "calculation": "compute",
        "ce": "cross entropy",
        "ddp": "distributed data parallel",
        "derivatives": "derivative",
        "evaluate": "eval",
        "evaluating": "eval",
        "evaluation": "eval",
        "gp": "gradient penalty",
        "gpu": "cuda",
        "grads": "gradients",
        "hvp": "hessian vector product",
        "init": "initialization",
        "initialisation": "initialization",
        "initialise": "initialize",
        "lr": "learning rate",
        "net": "network",
        "nn": "network",
        "normalisation": "normalization",
        "oom": "out memory",
        "optim": "optimizer",
        "optimiser": "optimizer",
        "param": "parameter",
        "params": "parameters",
    }.items()
}


def telling(question: str, names: Names) -> list[str]:
    """Return the words of a question that tell, each once, as `split` gives them; all of them where none does."""
    return those_that_tell(split(question, names))


def those_that_tell(words: Sequence[str]) -> list[str]:
    """Return the words that tell among those that `split` gave, each once; all of them where none does."""
    return list(dict.fromkeys(word for word in words if word not in _COMMON)) or list(dict.fromkeys(words))


def names_in(text: str) -> Names:
    """Return the names in a text that consist of words, in lower case and in one, with their words; and short forms."""
    found = {}
    for name in set(re.findall(r"\w+", text)):
        parts = [part for piece in name.split("_") for part in _parts(piece)]
        if len(parts) > 1:
            found["".join(parts)] = [word for part in parts for word in _SAME.get(part, [part])]
    return _SAME | found


def split(text: str, names: Names) -> list[str]:
    """Return the words of a text in lower case, `names` and short forms in theirs, without signs."""
    if "." in text or "(" in text:
        text = _CALLED.sub(_kept, _POINTED.sub(" ", text))
    pieces = re.findall(r"[^\W_]+", text)
    return [word for piece in pieces for part in _parts(piece) for word in names.get(part, [part])]


def _kept(called: re.Match[str]) -> str:
    """Return a name that is called so that it is no common word."""
    return f"{called[0]}call" if called[0] in _COMMON else called[0]


@cache
def _parts(piece: str) -> list[str]:
    """Return the words of a name like BatchNorm2d in lower case; a name with a single letter, as AdamW, is one."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+[a-z]*", piece) if piece.isascii() else [piece]
    whole = len(parts) < 2 or min(map(len, parts)) < 2
    return [piece.lower()] if whole and piece else [part.lower() for part in parts]
