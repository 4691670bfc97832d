"""Writes in place, where PyTorch still needs what was there, or cannot record them."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain import passes
from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.written_elsewhere import NAMELESS, renormed, said, sentence, written_elsewhere
from course_utils.explain.naming import targets, tensors, variables
from course_utils.explain.nodes import behind, modified, number, operation, operation_named, recorded_lines, same_memory
from course_utils.explain.reading import is_a
from course_utils.explain.rerun import Write
from course_utils.explain.returned import updated_in
from course_utils.explain.rules import Rule, card
from course_utils.explain.settings import switched_off
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import written
from course_utils.explain.writers import Writing, base_of_statement, out_of_place, saves, steps, surely_ran, writings
from course_utils.graph.trace import LiveNode


def _saved_was_written(s: Situation, m: re.Match[str]) -> Explanation | None:
    start = s.started
    if start is None:
        return None
    versions = re.search(r"is at version (\d+); expected version (\d+)", s.text)
    found = modified(behind(s.roots))
    fitting = [it for it in found if versions is None or it[2]._version == int(versions[1])] or found
    needed = (start.place("needed here"),)
    if not fitting:
        return _from_message(s, needed)
    node, kept_as, tensor = fitting[0]
    names = _names(s, tensor, node)
    op = operation(node)
    write = s.writes.last_into(tensor) if s.writes is not None else None
    if write is not None:
        return _seen(s, write, names, op, _anomaly(s, node), needed)
    parameter = _parameter(s, tensor)
    if parameter is not None:
        if (by_lookup := renormed(s, tensor, op, needed)) is not None:
            return by_lookup
        stepped = [(call, it) for call in s.calls for it in steps(call, parameter) if _between(s, call, it, node)]
        if stepped:
            return _stepped(s, names, op, stepped, needed)
    saved = [(call, it) for call in s.calls for it in saves(call, op, names)]
    wrote = _after(_written_to(s, names), [call.place("saved here", it) for call, it in saved])
    saved = [(call, it) for call, it in saved if all(it is not other.statement for other in wrote)]
    where = _anomaly(s, node) or [call.place("saved here", it) for call, it in saved if len(saved) == 1]
    name = f"`{names[0]}`" if names else f"the result of {said(op)}" if kept_as == "result" else NAMELESS
    headline = f"{name}, which {said(op)} had saved, was overwritten in place"
    if wrote:
        certain = len(wrote) == 1 and tensor._version == 1 and wrote[0].sure
        lines = " and ".join(f"`{written(it.statement, 60) or it.place.text}`" for it in wrote[:2])
        why = f"{sentence(op)} saved {name} for its derivative, and backward() wants it unchanged. {lines} "
        why += (
            "wrote into its memory." if certain else "writes into its memory." if len(wrote) == 1 else "write into it."
        )
        places = [*where, *(it.place for it in wrote[: 1 if where else 2]), *needed]
        it = wrote[0]
        fix = out_of_place(it.statement, _base(s, it, tensor), _looped(s, it))
        if _under_no_grad(s, it):
            fix = f"# outside of no_grad, so that it is recorded:\n{fix}"
        if parameter is not None:
            fix = "# write into it after all backward passes, or compute this loss again after the write"
        return card("in-place", headline, why, fix, places, certain)
    return written_elsewhere(s, node, op, names, name, parameter is not None, where)


def _between(s: Situation, call: Call, step: ast.stmt, node: LiveNode) -> bool:
    """Return whether a step may have come after a node was made, by what is known of when that was.

    A step that stands after the failing line is one of the round before. If a pass of this line in that round is
    remembered, and the node is younger than that pass, then the step was before the node, too.
    """
    if step.lineno <= call.line or call is not s.started:
        return True
    before = [it for it in passes.before_the_last() if it.code is call.frame.f_code and it.line == call.line]
    if before:
        return number(node) < before[-1].made
    return not passes.remembering() and not updated_in(s)


def _written_to(s: Situation, names: list[str]) -> list[Writing]:
    """Return what writes into a tensor under any of its names, each statement once."""
    found = [it for call in s.calls for name in names for it in writings(call, name)]
    return list({id(it.statement): it for it in found}.values())


def _after(wrote: list[Writing], saved: list[Place]) -> list[Writing]:
    """Leave out what ran once, before the tensor was saved: that changed nothing that backward needs."""
    return [it for it in wrote if not (it.sure and saved and all(_before(it, place) for place in saved))]


def _before(it: Writing, place: Place) -> bool:
    return it.reached_in == place.file and it.reached < place.line


def _seen(
    s: Situation, write: Write, names: list[str], op: str, saved: list[Place], needed: tuple[Place, ...]
) -> Explanation:
    """Say which line was seen to write, when the cell ran again."""
    name = f"`{names[0]}`" if names else f"a tensor saved by {said(op)}"
    source = s.sources.of(write.file)
    text = source.text(write.line) if source is not None else ""
    place = Place("overwritten here", write.file, write.line, text)
    why = (
        f"{sentence(op)} saved {name} for its derivative. When the cell ran again, `{write.function}` was seen to "
        f"write into it here."
    )
    statement = (
        next((it for it in ast.walk(source.tree) if isinstance(it, ast.stmt) and it.lineno == write.line), None)
        if source
        else None
    )
    fix = out_of_place(statement) if statement is not None else "# write the result into a new tensor"
    headline = f"{name}, which {said(op)} had saved, was overwritten in place"
    code = "in-place-by-step" if ".step(" in text else "in-place"
    if code == "in-place-by-step":
        fix = f"# all backward passes first, then {text}\n# or: compute this loss again after the step"
    return card(code, headline, why, fix, [*saved, place, *needed], True)


def _stepped(
    s: Situation, names: list[str], op: str, stepped: list[tuple[Call, ast.stmt]], needed: tuple[Place, ...]
) -> Explanation:
    name = f"`{names[0]}`" if names else "a parameter"
    call, statement = stepped[-1]
    line = written(statement, 40) or "optimizer.step()"
    why = (
        f"The graph was recorded with the values that {name} had then. `{line}` wrote new ones into it, "
        "and this pass still needs the old ones."
    )
    fix = f"# all backward passes first, then {line}\n# or: compute this loss again after the step"
    certain = len(stepped) == 1 and surely_ran(call, statement)
    headline = f"{name} was changed by `{line}` between its use and this backward pass"
    return card("in-place-by-step", headline, why, fix, [call.place("overwritten here", statement), *needed], certain)


def _from_message(s: Situation, needed: tuple[Place, ...]) -> Explanation:
    """Say what the text alone gives, where the graph is gone or hides what it keeps."""
    made = re.search(r"output \d+ of (\w+),", s.text)
    what = f"the result of `{operation_named(made[1])}`" if made else "a tensor"
    why = f"A backward step needs {what} as it was in the forward pass, and something has written into it since."
    fix = (
        "look for `+=`, `x[...] =`, methods that end in `_`, inplace=True, optimizer.step()\n# %%explain finds the line"
    )
    return card("in-place", f"{what}, saved for backward, was overwritten in place", why, fix, needed, False)


def _base(s: Situation, it: Writing, saved: torch.Tensor) -> str:
    """Return the name of the tensor whose part is written into by another name; "" where there is no other."""
    into = base_of_statement(it.statement)
    call = next((call for call in s.calls if call.scope is not None and call.file == it.place.file), None)
    value = call.look_up(into) if call is not None and into.isidentifier() else None
    if not is_a(value, torch.Tensor) or value._base is None:
        return ""
    whole = [name for own in reversed(s.calls) for name, other in tensors(own) if other is value._base]
    return whole[0] if whole and whole[0].isidentifier() else ""


def _looped(s: Situation, it: Writing) -> bool:
    """Return whether what is written into is the variable of a loop: a new tensor under its name would be lost."""
    into = base_of_statement(it.statement)
    return any(
        isinstance(outer, ast.For) and into in targets(outer)
        for call in s.calls
        if call.source is not None and it.statement in call.source
        for outer in call.source.around(it.statement)
    )


def _under_no_grad(s: Situation, it: Writing) -> bool:
    return any(
        switched_off(call.source, it.statement) is not None
        for call in s.calls
        if call.source is not None and it.statement in call.source
    )


def _anomaly(s: Situation, node: object) -> list[Place]:
    """Return the line at which the operation was recorded, if anomaly mode kept it."""
    for entry in reversed(recorded_lines(node)):
        match = re.search(r'File "([^"]+)", line (\d+), in', entry)
        if match is None:
            continue
        for call in s.calls:
            if call.file == match[1]:
                return [call.place("saved here", int(match[2]))]
    return []


def _names(s: Situation, tensor: torch.Tensor, node: object) -> list[str]:
    """Return the learner's names for a memory: of what the node made itself, of the very tensor, of its aliases."""
    found: dict[str, tuple[bool, bool, bool, int]] = {}
    for call in reversed(s.calls):
        for name, other in tensors(call):
            if same_memory(other, tensor) and name not in found:
                alike = other.shape == tensor.shape and other.stride() == tensor.stride()
                depth = name.count(".") + name.count("[")
                found[name] = not alike, other.grad_fn is not node, not other.requires_grad, depth
    return sorted(found, key=lambda name: found[name])


def _parameter(s: Situation, tensor: torch.Tensor) -> torch.Tensor | None:
    for call in reversed(s.calls):
        for _, other in tensors(call):
            learned = other.requires_grad or is_a(other, torch.nn.Parameter)
            if other.is_leaf and learned and same_memory(other, tensor):
                return other
        for _, value in variables(call):
            if is_a(value, torch.optim.Optimizer):
                for group in value.param_groups:
                    for own in group["params"]:
                        if same_memory(own, tensor):
                            return own  # type: ignore[no-any-return]
    return None


RULES = (Rule(RuntimeError, r"modified by an inplace operation", _saved_was_written),)
