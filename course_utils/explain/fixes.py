"""Fixes that are code: they parse, and what stands for something of the learner's is said to do so."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import replace

from course_utils.explain.explanation import WIDTH, Explanation
from course_utils.explain.ownership import is_learners
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS

MAX_LINE = WIDTH + 16  # the card indents it
# What a fix may name by the name that most code imports it under, and what it is otherwise.
_IN_FULL = {"F": "torch.nn.functional", "nn": "torch.nn", "DataLoader": "torch.utils.data.DataLoader"}


def in_own_names(it: Explanation, s: Situation) -> Explanation:
    """Return an explanation whose fix parses, and says which of its names the learner has to put in."""
    words = _words(s)
    if not words:
        return it
    try:
        tree = ast.parse(it.fix)
    except SyntaxError:  # a sentence
        return replace(it, fix="\n".join(f"# {line}".replace("# # ", "# ") for line in it.fix.splitlines()))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    given = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins)) | {"torch"}
    given |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    given |= {node.name for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    unknown = dict.fromkeys(node.id for node in names if node.id not in words | given)
    fix = it.fix
    for name in unknown.keys() & _IN_FULL.keys():
        fix = re.sub(rf"(?<![\w.]){name}\b", _IN_FULL[name], fix)
    strange = [name for name in unknown if name not in _IN_FULL]
    if strange:
        first, _, rest = fix.partition("\n")
        fix = f"# put your own in place of {', '.join(strange)}:\n{first}" + (f"\n{rest}" if rest else "")
    return replace(it, fix="\n".join(_comment_first(line) for line in fix.splitlines()))


def _comment_first(line: str) -> str:
    """Return a line of code whose comment would be cut off with the comment before it."""
    code, mark, comment = line.partition("  # ")
    return f"# {comment}\n{code}" if mark and len(line) > MAX_LINE and not code.startswith(" ") else line


def _words(s: Situation) -> set[str]:
    """Return every name that is given a value in the learner's files that are at hand."""
    sources = [call.source for call in s.calls] or ([s.sources.of(s.file)] if is_learners(s.file) else [])
    cells = [cell for own in sources if own is not None for cell in s.sources.cells_before(own)]
    trees = [own.tree for own in (*sources, *cells) if own is not None]
    return {name for tree in trees for node in ast.walk(tree) for name in _names(node)}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((it.asname or it.name).partition(".")[0] for it in node.names)
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name
