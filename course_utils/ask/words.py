"""The words of a question or an entry, as both are searched: names in their parts, short forms written out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from course_utils.ask.chinese import pieces

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

# A name with the dot before it or the bracket behind it, which make a common word code: `torch.where`, `x.to(device)`.
# Short forms with points are names, too: their letters would count as words.
_NAME = re.compile(r"\.?(?:[eEiI]\.[gGeE]\b|[wW]\.[rR]\.[tT]\b|\w+)\(?")
_POINTED = {"e.g", "i.e", "w.r.t"}

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
    return [word for name in _NAME.findall(text) for word in _words_of(name, names)]


def split_all(rows: Sequence[Sequence[str]]) -> tuple[Names, list[list[str]], frozenset[str]]:
    """Return the names in all texts, the words of each with spaces between, as `split` gives them, and all words.

    A name that stands in many texts is taken apart once.
    """
    named = [[_NAME.findall(text) for text in row] for row in rows]
    each = {name for row in named for text in row for name in text}
    names = names_in(" ".join(each))
    words = {name: " ".join(_words_of(name, names)) for name in each}
    known = frozenset(" ".join(words.values()).split())
    return names, [[" ".join(map(words.__getitem__, text)) for text in row] for row in named], known


def _words_of(name: str, names: Names) -> list[str]:
    return [word for part in _parts_of(name) for word in names.get(part, [part])]


@cache
def _parts_of(name: str) -> list[str]:
    """Return the words of a name that `_NAME` found, Chinese ones in English; one that is called is no common word."""
    plain = name.strip(".(")
    if plain.lower() in _POINTED:
        return []
    if plain in _COMMON and plain != name:
        plain += "call"
    return [part for run in pieces(plain) for piece in run.split("_") for part in _parts(piece)]


@cache
def _parts(piece: str) -> list[str]:
    """Return the words of a name like BatchNorm2d in lower case; a name with a single letter, as AdamW, is one."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+[a-z]*", piece) if piece.isascii() else [piece]
    whole = len(parts) < 2 or min(map(len, parts)) < 2
    return [piece.lower()] if whole and piece else [part.lower() for part in parts]
