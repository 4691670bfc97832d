"""What a gradient was asked for and is not in the graph: a part or copy made beside it, a part of a model not used."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.no_graph import started_from
from course_utils.explain.lines import defined
from course_utils.explain.naming import argument, assigned, dotted, modules, named
from course_utils.explain.nodes import MAX_NODES, behind, operation
from course_utils.explain.reading import is_a
from course_utils.explain.rules import card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, with_keyword, written
from course_utils.graph.trace import ACCUMULATE, LiveNode, node_name

# Operations that change no number: what they give is a part of a tensor, or a copy of it. As `operation` names them.
_PARTS = re.compile(
    "slicing|indexing|clone|(unsafe_)?view|reshape|(un)?squeeze|transpose|permute|t|narrow|split(_with_sizes)?|"
    "unbind|expand|alias|index_select|diagonal|unfold|as_strided|a conversion"
)
_MOST_STEPS = 20


def beside(s: Situation, tensor: torch.Tensor) -> Explanation | None:
    """Explain a part or copy of a tensor that is in the graph, where the part itself is not: proved by both graphs."""
    found = _source_of(s, tensor)
    own, output = named(s, lambda other: other is tensor), written(started_from(s)) or "the output"
    if found is None or not own:
        return None
    base, name = found
    line = next(
        (it for call in reversed(s.calls) for it in reversed(assigned(call, own)) if it.lineno < call.line), None
    )
    made: list[Place] = []
    call = next((it for it in s.calls if line is not None and line in assigned(it, own)), None)
    if call is not None and line is not None:
        made = [call.place("made here", line)]
    kind = "part" if tensor.numel() < base.numel() else "copy" if not tensor._is_view() else "view"
    why = f"`{output}` was computed from `{name}`. `{own}` is a {kind} of `{name}`, made beside that: it leads back to "
    why += f"`{name}`, and no path leads from `{output}` to it."
    fix = f"# make {own} first, and compute {output} from it: torch.cat puts slices together\n"
    fix += f"{_of_base(s, name, line)}  # or for {name}, and a slice of the gradient"
    if kind != "part":
        fix = f"# make {own} first, and compute {output} from it\n{_of_base(s, name, line)}  # or ask for {name}"
    headline = f"`{own}` is a {kind} of `{name}` that `{output}` was not computed from"
    return card("not-in-graph", headline, why, fix, [*made, *s.needed()])


def _source_of(s: Situation, tensor: torch.Tensor) -> tuple[torch.Tensor, str] | None:
    """Return the tensor in sight that is in the graph, and of which another is a part or copy, with its name.

    Not where the graph has only parts of it, too: then the numbers that were asked for may not be used at all.
    """
    used = behind(s.roots)
    to_edge: dict[tuple[LiveNode, int], list[LiveNode]] = {}
    for user in used:
        for edge in user.next_functions:
            to_edge.setdefault(edge, []).append(user)
    node: LiveNode = tensor.grad_fn
    output = tensor.output_nr
    if node is None or node in used:
        return None
    for _ in range(_MOST_STEPS):
        before = [edge for edge in node.next_functions if edge[0] is not None]
        if not _PARTS.fullmatch(operation(node)) or len(before) != 1:
            return None
        node, output = before[0]
        if node in used:
            break
    if all(_PARTS.fullmatch(operation(user)) for user in to_edge.get((node, output), ())):
        return None
    found: list[torch.Tensor] = []

    def is_it(other: torch.Tensor) -> bool:
        if node_name(node) == ACCUMULATE:
            same = other is getattr(node, "variable", None)
        else:
            same = other.grad_fn is node and other.output_nr == output
        if same:
            found.append(other)
        return same

    name = named(s, is_it)
    return (found[0], name) if name else None


def _of_base(s: Situation, name: str, line: ast.stmt | None) -> str:
    """Return the call that differentiates for the whole tensor, with the slice that was made of it behind it."""
    node = s.node
    inputs = argument(node, 1, "inputs")
    if not isinstance(node, ast.Call) or inputs is None:
        return f"# torch.autograd.grad(..., {name})"
    one = inputs.elts[0] if isinstance(inputs, ast.List | ast.Tuple) and len(inputs.elts) == 1 else inputs
    if isinstance(one, ast.List | ast.Tuple):
        return f"# {name} in place of its part"
    base = ast.parse(name, mode="eval").body
    arguments = [base if it is inputs else it for it in node.args]
    keywords = [ast.keyword(it.arg, base) if it.value is inputs else it for it in node.keywords]
    text = f"{ast.unparse(ast.Call(node.func, arguments, keywords))}[0]"
    value = line.value if isinstance(line, ast.Assign) else None
    if isinstance(value, ast.Subscript) and written(value.value) == name and written(value.slice):
        text += ast.unparse(ast.Subscript(ast.Name("g"), value.slice)).removeprefix("g")
    return text


def parameter_name(s: Situation, tensor: torch.Tensor) -> str:
    """Return "learner.head.weight" for a parameter of a module in sight; "" for any other tensor."""
    owner = _owner(s, tensor)
    return f"{owner[0]}.{owner[2]}" if owner is not None else ""


def _owner(s: Situation, tensor: torch.Tensor) -> tuple[str, torch.nn.Module, str] | None:
    """Return the module in sight whose own parameter a tensor is: its name, itself, the parameter's name in it."""
    for call in reversed(s.calls):
        for path, module in modules(call):
            for own, parameter in torch.nn.Module.named_parameters(module, recurse=False):
                if parameter is tensor:
                    return path, module, own
    return None


def part_of_model(s: Situation, tensor: torch.Tensor) -> Explanation | None:
    """Explain a parameter of a part of a model of which no parameter is in the graph, where others of the model are."""
    owner = _owner(s, tensor)
    nodes = behind(s.roots)
    seen = set(nodes)
    whole = len(nodes) < MAX_NODES and all(to is None or to in seen for it in nodes for to, _ in it.next_functions)
    if owner is None or not whole:
        return None
    path, module, own = owner
    leaves = {id(it.variable) for it in nodes if node_name(it) == ACCUMULATE}
    if any(id(it) in leaves for it in torch.nn.Module.parameters(module)):
        return None
    above = _above(s, module, leaves)
    if above is None and len(list(torch.nn.Module.parameters(module, recurse=False))) < 2:
        return None
    output = written(started_from(s)) or "the output"
    name = path if above is None else dotted(above[0], above[2])
    unread, made = (False, []) if above is None else _never_read(s, above[1], above[2])
    why = f"None of the parameters of `{name}` is in the graph of `{output}`"
    why += "." if above is None else f", and others of `{above[0]}` are."
    if unread and above is not None:
        why += f" No line reads `.{above[2]}` after it is made, so nothing was computed with it."
    else:
        why += " It was not used for it, or what it gave lost its graph: by detach(), item(), no_grad, NumPy."
    fix = f"# ask only for the parameters that {output} is computed from"
    node = s.node
    if isinstance(node, ast.Call) and called(node) == "grad":
        fix += f"\n{with_keyword(node, 'allow_unused', True)}  # None for the others"
    headline = f"`{path}.{own}` is not in the graph of `{output}`, nor is any parameter of `{name}`"
    if unread:
        headline = f"`{output}` does not use `{name}`, so `{path}.{own}` is not in its graph"
    return card("not-in-graph", headline, why, fix, [*made, *s.needed()], unread)


def _above(s: Situation, module: torch.nn.Module, leaves: set[int]) -> tuple[str, torch.nn.Module, str] | None:
    """Return the smallest module around one that has a parameter in the graph: its name, itself, its part without."""
    found: list[tuple[int, int, tuple[str, torch.nn.Module, str]]] = []
    for call in reversed(s.calls):
        for path, outer in modules(call):
            parts = [
                name
                for name, it in torch.nn.Module.named_children(outer)
                if any(inner is module for inner in torch.nn.Module.modules(it))
            ]
            inside = list(torch.nn.Module.parameters(outer))
            if len(parts) == 1 and any(id(it) in leaves for it in inside):
                found.append((len(inside), len(found), (path, outer, parts[0])))
    return min(found)[2] if found else None


def _never_read(s: Situation, parent: torch.nn.Module, attribute: str) -> tuple[bool, list[Place]]:
    """Return whether no line of a learner's model's file reads an attribute of it, and the line that makes it."""
    code = getattr(type(parent).forward, "__code__", None)
    source, _ = defined(s, code) or (None, None)
    if source is None or any(
        is_a(parent, it) for it in (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
    ):
        return False, []
    spots = [it for it in ast.walk(source.tree) if isinstance(it, ast.Attribute) and it.attr == attribute]
    ways = ("getattr", "children", "named_children", "modules", "named_modules", "get_submodule", "__getattr__")
    around = any(
        (isinstance(it, ast.Name | ast.Attribute) and (it.id if isinstance(it, ast.Name) else it.attr) in ways)
        for it in ast.walk(source.tree)
    )
    read = any(isinstance(it.ctx, ast.Load) for it in spots)
    made = [source.place("made here", it) for it in spots if isinstance(it.ctx, ast.Store)]
    return not (read or around) and len(made) == 1, made[:1] if len(made) == 1 and not read else []
