"""Embeddings that are asked with the numbers of something else, as their names and those of the arguments say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parameters, parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.source import tree_of
from course_utils.explain.source import called

_TABLES = ("Embedding", "EmbeddingBag", "from_pretrained")
# What names are made of beside the thing that they are of.
_GENERAL = re.compile(
    r"^(ids?|idx|index|indices|emb|embed\w*|table|lookup|factors?|bias|b|x|in|input|inputs|batch|vec\w*|w|weight|num)$"
)


def other_tables(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that ask the table of one argument with another one, which has a table of its own."""
    for file, scope in scopes:
        tables = _tables(file) if isinstance(scope, ast.FunctionDef) else set()
        given = {name: _words(name) for name in parameters(scope)} if isinstance(scope, ast.FunctionDef) else {}
        for node in parts(scope) if tables else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
                continue
            table, by = called(node), node.args[0]
            if table not in tables or not isinstance(by, ast.Name) or not given.get(by.id):
                continue
            own = any(given[by.id] & _words(it) for it in tables - {table})
            meant = [name for name, words in given.items() if words & _words(table)]
            if own and len(meant) == 1 and meant[0] != by.id and not given[by.id] & _words(table):
                yield Told(
                    "other-table",
                    Spot(file, node.lineno),
                    f"{table} is asked with {by.id}, and {meant[0]} is what it is named for",
                    f"{by.id} has a table of its own. The rows of {table} are taken by {by.id}: of {meant[0]} they "
                    "learn nothing.",
                    f"self.{table}({meant[0]})",
                    (table, by.id),
                )


def _tables(file: str) -> set[str]:
    """Return the attributes of a file's classes that embeddings are assigned to."""
    tree = tree_of(file)
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)] if tree is not None else []
    targets = [node.targets[0] for node in made if called(node.value) in _TABLES]
    return {it.attr for it in targets if isinstance(it, ast.Attribute)}


def _words(name: str) -> set[str]:
    words = {it.rstrip("s") for it in name.lower().split("_")}
    return {it for it in words if len(it) > 1 and not _GENERAL.match(it)}
