"""Lines of the learner's files that are at hand, found by what they do, wherever they stand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import CodeType

from course_utils.explain.explanation import Place
from course_utils.explain.ownership import is_learners
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, Scope, Source, walk, written


def reached(s: Situation) -> Iterator[tuple[Source, ast.AST]]:
    """Yield the functions, classes and files that the functions at work use by name, directly or through others.

    Of a warning of which only file and line are known, these are all of its file.
    """
    sources = {id(call.source): call.source for call in s.calls if call.source is not None}
    waiting: list[tuple[Source, ast.AST]] = [
        (call.source, call.scope) for call in s.calls if call.source is not None and call.scope is not None
    ]
    if not sources and is_learners(s.file) and (of_warning := s.sources.of(s.file)) is not None:
        sources = {id(of_warning): of_warning}
        scopes = [it for it in ast.walk(of_warning.tree) if isinstance(it, (*FUNCTIONS, ast.Lambda, ast.ClassDef))]
        waiting = [(of_warning, it) for it in (of_warning.tree, *scopes)]
    for own in list(sources.values()):
        for cell in s.sources.cells_before(own):
            sources[id(cell)] = cell
            waiting.append((cell, cell.tree))
    defined: dict[str, list[tuple[Source, ast.AST]]] = {}
    for source in sources.values():
        for it in ast.walk(source.tree):
            if isinstance(it, (*FUNCTIONS, ast.ClassDef)):
                defined.setdefault(it.name, []).append((source, it))
    seen: set[ast.AST] = set()
    for source, scope in waiting:  # the list grows while it is read
        if scope in seen:
            continue
        seen.add(scope)
        yield source, scope
        for node in walk(scope):
            if isinstance(node, ast.Name | ast.Attribute):
                waiting += defined.get(node.id if isinstance(node, ast.Name) else node.attr, [])
            if isinstance(node, ast.Lambda) or (isinstance(scope, ast.ClassDef) and isinstance(node, FUNCTIONS)):
                waiting.append((source, node))


def everywhere(s: Situation) -> Iterator[tuple[Source, ast.AST]]:
    """Yield all parts of the code that the functions at work use."""
    seen: set[ast.AST] = set()
    for source, scope in reached(s):
        for node in (scope, *walk(scope)):
            if node not in seen:
                seen.add(node)
                yield source, node


def defined(s: Situation, code: CodeType | None) -> tuple[Source, Scope] | None:
    """Return the learner's function that has this code, with its source; None where it is none of the learner's."""
    source = s.sources.of(code.co_filename) if code is not None and is_learners(code.co_filename) else None
    scope = source.function(code) if source is not None and code is not None else None
    return None if source is None or scope is None else (source, scope)


def lines(s: Situation, role: str, matches: Callable[[ast.AST], bool]) -> list[Place]:
    """Return the lines with a part that matches, each once."""
    found: dict[tuple[str, int], Place] = {}
    for source, node in everywhere(s):
        line = getattr(node, "lineno", 0)
        if line and matches(node):
            found[source.file, line] = Place(role, source.file, line, source.text(line))
    return list(found.values())


def only_line(s: Situation, role: str, matches: Callable[[ast.AST], bool]) -> list[Place]:
    """Return the line with a part that matches, if there is one such line only: then it is the one."""
    found = lines(s, role, matches)
    return found if len(found) == 1 else []


def has_keyword(node: ast.AST, name: str, value: str = "True") -> bool:
    """Return whether a call has a keyword argument of this value; of any, for ""."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return any(it.arg == name and (not value or written(it.value) == value) for it in keywords)
