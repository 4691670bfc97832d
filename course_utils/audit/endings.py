"""Targets that go on where an episode ends: the flag of its end is at hand, and nothing of the target reads it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from course_utils.audit.columns import columns, stored_flags, unpacked_flags
from course_utils.audit.episodes import is_discount, is_flag
from course_utils.audit.expressions import factors_of
from course_utils.audit.forgotten import can_end, never_kept, step_flags
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import is_read, names_read, parts
from course_utils.audit.rewards import is_reward
from course_utils.audit.source import tree_of
from course_utils.explain.source import called, names_of

_ONE = frozenset({"r", "rs", "b_r", "r_b", "r_t", "rb", "br"})  # rewards that the rules for names leave out
_SPEAKS = re.compile(r"is (not )?None|non_?final|not_?done|mask|continuing|alive|time_?limit|infinite", re.I)
_ENDLESS = re.compile(r"Pendulum|Cheetah|Swimmer|Reacher|Pusher|dm_control")
_NEXT = re.compile(r"next|target|boot|max|\bq\w*|\w*_q\b|\bvalues?\[|\bv(alue)?s?_?(next|new|n|2|p)\b", re.I)
_KEEPS = frozenset({"append", "push", "add", "store", "remember", "extend", "put", "print"})
_CLOCKS = re.compile(r"^(\w+\.)*_?(t|i|k|step|steps|n_?steps?|count|counter|time|elapsed\w*|step_?count\w*)$", re.I)
_MAKES = re.compile(r"^(done|dones|terminated|terminal|over|finished)$")
_SAYS = re.compile(r"^(ends?|finished|over|game_?over|last)$")


class Ending(NamedTuple):
    """A line that adds the discounted value of what follows, and the flag that it leaves out."""

    spot: Spot
    flag: str
    is_name: bool  # and not an attribute or a key
    lost: bool = False  # no record keeps it


@lru_cache(maxsize=256)
def endless_targets(file: str, scope: ast.AST) -> tuple[Ending, ...]:
    """Return the lines of a function whose targets go on at the end of an episode, though its flag was handed over.

    The flag is one of several things that a memory, a loop, a caller or a step of the environment gives, and nothing
    reads it but what casts it, keeps it, or ends a loop. A function that speaks of masks, or of `None` for a last
    state, is left in peace, and so is a file whose episodes end by a count of steps alone.
    """
    nodes = list(ast.walk(scope) if isinstance(scope, ast.FunctionDef) else parts(scope))
    targets = [
        node for node in nodes if isinstance(node, ast.BinOp) and _goes_on(node, nodes) and not _reads_flag(node, nodes)
    ]
    tree = tree_of(file)
    if not targets or tree is None or _SPEAKS.search(ast.unparse(scope)):
        return ()
    if _ENDLESS.search(ast.unparse(tree)) or _ends_by_count(file):
        return ()
    named = _handed(scope, nodes) | _columns(file, nodes) | (step_flags(nodes) if can_end(file) else set())
    placed = unpacked_flags(file, nodes, _ends)
    given = named | placed
    every = nodes if isinstance(scope, ast.FunctionDef) else list(ast.walk(tree))
    found = []
    for node in targets:
        used = _used(every, node)
        unused = min(named - used, default="") or min(placed - used, default="")
        member = unused or ("" if given else _member(file, nodes))
        flag = member or ("" if given else never_kept(file, scope))
        if flag:
            found.append(Ending(Spot(file, node.lineno), flag, bool(unused), not member))
    return tuple(found)


def _goes_on(node: ast.BinOp, nodes: list[ast.AST]) -> bool:
    """Say whether a sum is `reward + gamma * value`, and no sum of rewards themselves."""
    for added, product in ((node.left, node.right), (node.right, node.left)):
        factors = list(factors_of(product))
        values = [it for it in factors if not is_discount(it)]
        named = any(is_reward(it) or getattr(it, "id", "") in _ONE for it in ast.walk(added)) or _key(added)
        if named and len(values) < len(factors) and any(_follows(it, nodes) for it in values):
            return isinstance(node.op, ast.Add)
    return False


def _reads_flag(node: ast.BinOp, nodes: list[ast.AST]) -> bool:
    """Say whether a target reads a flag, or what was made of one: of several flags it needs no other."""
    if any(map(_goes_out, ast.walk(node))):
        return True
    names = names_read(node)
    for it in nodes:
        if isinstance(it, ast.Assign) and isinstance(it.targets[0], ast.Name) and it.targets[0].id in names:
            names = names | names_read(it.value) if isinstance(it.value, ast.BinOp | ast.UnaryOp) else names
    return any(map(_ends, names))


def _goes_out(node: ast.AST) -> bool:
    """Say whether a part of a target is `1 - D`: whatever its name, what is 0 or 1 there ends an episode."""
    whole = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant)
    return whole and node.left.value == 1 and not is_discount(node.right)  # type: ignore[attr-defined]


def _follows(node: ast.expr, nodes: list[ast.AST]) -> bool:
    """Say whether an expression can be the value of the next state: what a call returns, or is named so."""
    if _calls(node) or _NEXT.search(ast.unparse(node)) is not None:
        return True
    assigned = [it for it in nodes if isinstance(it, ast.Assign) and isinstance(node, ast.Name)]
    own = [it.value for it in assigned if any(ast.unparse(to) == ast.unparse(node) for to in it.targets)]
    return any(map(_calls, own)) and not any(ast.unparse(node) in names_read(it) for it in own)


def _calls(node: ast.AST) -> bool:
    return any(isinstance(it, ast.Call) and called(it) != "sum" for it in ast.walk(node))


def _key(node: ast.expr) -> str:
    """Return the key of `batch["reward"]` in an expression."""
    for part in ast.walk(node):
        key = part.slice.value if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) else None
        if isinstance(key, str) and is_reward(ast.Name(key)):
            return key
    return ""


def _handed(scope: ast.AST, nodes: list[ast.AST]) -> set[str]:
    """Return the flags that a function gets together with other things: unpacked, gone through, or as parameters."""
    found: set[str] = set()
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.For | ast.comprehension) else targets
        for target in targets:
            found.update(names_of(target) if isinstance(target, ast.Tuple) and len(target.elts) >= 3 else ())
    if isinstance(scope, ast.FunctionDef) and len(scope.args.args) >= 4:
        found.update(it.arg for it in scope.args.args)
    return {name for name in found if is_flag(name)}


def _columns(file: str, nodes: list[ast.AST]) -> set[str]:
    """Return the names that hold the flags of a batch: named so, taken by a key named so, or from where one is kept."""
    found = list(columns(nodes))
    kept = stored_flags(file, _ends) if found else set()
    return {it.name for it in found if _ends(it.name) or (_ends(it.key) if isinstance(it.key, str) else it.key in kept)}


def _ends(name: str) -> bool:
    return is_flag(name) or _SAYS.match(name) is not None


def _used(nodes: list[ast.AST], target: ast.expr) -> set[str]:
    """Return the names of which something is made or decided that may reach a target."""
    casts: list[tuple[str, set[str]]] = []
    idle: set[int] = set()  # parts of the tree that read names without making anything of them for the target
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs = [pair for it in node.targets for pair in _paired(it, node.value)]
            if all(name for name, _ in pairs):
                casts += [(name, names_read(value)) for name, value in pairs]
                idle.update(id(part) for part in ast.walk(node))
        elif isinstance(node, ast.While) or (isinstance(node, ast.If) and _only_ends(node, target)):
            idle.update(id(part) for part in ast.walk(node.test))
        elif isinstance(node, ast.Call) and called(node) in _KEEPS:
            idle.update(id(part) for it in (*node.args, *(it.value for it in node.keywords)) for part in _plain(it))
    read = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in idle
    }
    for _ in casts:
        more = {it for name, names in casts if name in read for it in names if it != name}
        if more <= read:
            break
        read |= more
    return read


def _plain(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the names that are handed on as they are, or cast: of a record that is kept, its entries."""
    if isinstance(node, ast.Name):
        yield node
    inside = node.elts if isinstance(node, ast.Tuple | ast.List) else node.args if isinstance(node, ast.Call) else []
    for part in inside:
        yield from _plain(part)


def _only_ends(node: ast.If, target: ast.expr) -> bool:
    """Say whether what a condition decides comes after a target, or is only what is printed or kept."""
    line = target.lineno
    plain = all(isinstance(it, ast.Expr) for it in (*node.body, *node.orelse))
    return node.lineno > line or (plain and not node.lineno <= line <= (node.end_lineno or line))


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return names with what they are bound to: part by part, also through `map` or a comprehension over a tuple."""
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not isinstance(target, ast.Tuple):
        return [("", value)]
    rows = value
    if isinstance(value, ast.ListComp | ast.GeneratorExp) and len(value.generators) == 1:
        rows = value.generators[0].iter
    elif isinstance(value, ast.Call) and called(value) == "map" and len(value.args) == 2:
        rows = value.args[1]
    if isinstance(rows, ast.Tuple | ast.List) and len(rows.elts) == len(target.elts):
        return [pair for to, part in zip(target.elts, rows.elts, strict=True) for pair in _paired(to, part)]
    return [(it.id if isinstance(it, ast.Name) else "", value) for it in target.elts]


def _member(file: str, nodes: list[ast.AST]) -> str:
    """Return the field or key of a batch that holds the flag and is never read, where the reward is read as one."""
    named = {it.attr for it in nodes if isinstance(it, ast.Attribute) and is_reward(it)}
    named |= {key for it in nodes if isinstance(it, ast.Subscript) and (key := _key(it))}
    fields = next((it for it in _records(file) if named & set(it)), [])
    flag = next((it for it in fields if is_flag(it)), "")
    return flag if flag and not is_read(file, flag) and not _unpacked(file) else ""


def _records(file: str) -> Iterator[list[str]]:
    """Yield the names of fields of a file's named tuples and data classes, and the keys of its dictionaries."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and called(node) == "namedtuple" and len(node.args) == 2:
            text = ast.unparse(node.args[1])
            yield re.findall(r"\w+", text)
        elif isinstance(node, ast.Call) and called(node) in ("dict", "TensorDict") and len(node.keywords) >= 4:
            yield [it.arg for it in node.keywords if it.arg]
        elif isinstance(node, ast.ClassDef):
            yield [
                it.target.id for it in node.body if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
            ]
        elif isinstance(node, ast.Dict):
            yield [it.value for it in node.keys if isinstance(it, ast.Constant) and isinstance(it.value, str)]


def _unpacked(file: str) -> bool:
    """Say whether a file takes anything with a flag apart into names that is no step: it may be a record."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Tuple):
            continue  # `state, done = env.reset(), False` takes nothing apart
        target, steps = node.targets[0], isinstance(node.value, ast.Call) and called(node.value) == "step"
        if isinstance(target, ast.Tuple) and not steps and any(is_flag(it) for it in names_of(target)):
            return True
    return False


@lru_cache(maxsize=64)
def _ends_by_count(file: str) -> bool:
    """Say whether all that a file ends episodes by is how many steps they have: its task may go on without end."""
    tree = tree_of(file)
    flags: list[ast.expr] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _flags(target, node.value)]
            flags += [value for name, value in pairs if _MAKES.match(name)]
        elif isinstance(node, ast.FunctionDef) and node.name == "step":
            returned = [it.value for it in ast.walk(node) if isinstance(it, ast.Return)]
            flags += [part for it in returned if isinstance(it, ast.Tuple) for part in it.elts[2:]]
            flags += [it.test for it in ast.walk(node) if isinstance(it, ast.If) and any(map(_returns_end, it.body))]
    compared = [it for value in flags for it in ast.walk(value) if isinstance(it, ast.Compare)]
    return bool(compared) and all(_CLOCKS.match(ast.unparse(it.left)) for it in compared)


def _returns_end(line: ast.stmt) -> bool:
    """Say whether a line of a step returns that the episode is over."""
    result = line.value if isinstance(line, ast.Return) else None
    flag = result.elts[2] if isinstance(result, ast.Tuple) and len(result.elts) > 2 else None
    return isinstance(flag, ast.Constant) and flag.value is True


def _flags(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield names and attributes with what they are bound to; nothing for what a call returns several of."""
    if isinstance(target, ast.Name | ast.Attribute):
        yield target.id if isinstance(target, ast.Name) else target.attr, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for to, part in zip(target.elts, value.elts, strict=False):
            yield from _flags(to, part)
