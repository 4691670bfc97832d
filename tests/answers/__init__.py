"""Right and wrong answers to every exercise, out of the learner's way: a folder a lesson, a file an exercise."""

import ast
from importlib import import_module
from pathlib import Path

from course_utils.checks.registry import exercises
from tests.answers.said import Said

_modules = {
    exercise.id: import_module(f"tests.answers.lesson_{exercise.lesson}.{exercise.id}")
    for exercise in exercises().values()
}

RIGHT = {name: module.RIGHT for name, module in _modules.items()}
MISCONCEIVED = {
    (name, wrong): answer
    for name, module in _modules.items()
    for wrong, answer in getattr(module, "MISCONCEIVED", {}).items()
}
WRONG = {
    name: [wrong.answer if isinstance(wrong, Said) else wrong for wrong in module.WRONG]
    for name, module in _modules.items()
}
# The misconceptions whose sentences are true of a wrong answer, in the order of WRONG. Of most there is none.
MAY_SAY = {
    name: [wrong.ideas if isinstance(wrong, Said) else () for wrong in module.WRONG]
    for name, module in _modules.items()
}
# Generic changes that leave an answer right, such as another order where order is free.
STILL_RIGHT = {(name, change) for name, module in _modules.items() for change in getattr(module, "STILL_RIGHT", ())}


def source_of(exercise: str) -> str:
    """Return the answers to an exercise as one source that imports no other file of this folder."""
    return _inlined(_modules[exercise].__name__, set())


def _inlined(module: str, done: set[str]) -> str:
    """Return a module's source, with the sources of what it imports from here in place of those imports."""
    if module in done:
        return ""
    done.add(module)
    source = Path(import_module(module).__file__).read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("tests.answers"):
            inlined = _inlined(node.module, done)
            lines[node.lineno - 1 : node.end_lineno] = [inlined, *[""] * (node.end_lineno - node.lineno)]
    return "".join(lines)


def right_source_of(exercise: str) -> str:
    """Return the right answers to an exercise as one source: of `source_of` what they use, and no wrong ones."""
    statements = ast.parse(source_of(exercise)).body
    by_name: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for name in _bound(statement):
            by_name.setdefault(name, []).append(statement)
    kept: set[ast.stmt] = set()
    waiting = ["RIGHT"]
    while waiting:
        for statement in by_name.pop(waiting.pop(), ()):
            kept.add(statement)
            waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return "\n".join(ast.unparse(statement) for statement in statements if statement in kept)


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return [node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)]
