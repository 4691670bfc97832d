"""One parameter that an optimizer was given twice: in two groups, or under two names."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.lines import only_line
from course_utils.explain.naming import argument, dotted, modules, named
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written


def _twice(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = ""
    group = s.given("optim/optimizer.py", "add_param_group", "param_group")
    optimizer = s.given("optim/optimizer.py", "add_param_group", "self")
    if isinstance(group, dict) and is_a(optimizer, torch.optim.Optimizer):
        known = {id(it) for other in optimizer.param_groups for it in other["params"]}
        both = [it for it in group["params"] if id(it) in known]
        name = named(s, lambda other: any(other is it for it in both)) if both else ""
    what = f"`{name}`" if name else "a parameter"
    if issubclass(s.kind, Warning):
        why = "The same tensor stands twice in one group, so each step would move it twice."
        given = written(argument(s.node, 0, "params")) or "parameters"
        return card(
            "parameters-twice",
            "a list of parameters contains one twice",
            why,
            f"list({{id(p): p for p in {given}}}.values())  # each once",
            s.needed(),
        )
    why = f"{what} stands in two groups, so each step would move it twice."
    fix = f"# leave {name or 'it'} out of one of the two groups"
    tied = _tied(s, name)
    places = [*tied, *s.needed()]
    whole = next(
        (path for call in s.calls for path, it in modules(call) if _are(it, group) and not name.startswith(f"{path}.")),
        "",
    )
    if tied:
        why = f"{what} has a second name: line {tied[0].line} makes two layers share it. Both groups contain it."
    if whole and name:
        fix = f"[p for p in {whole}.parameters() if p is not {name}]  # in place of {whole}.parameters()"
    if called(s.node) == "add_param_group":
        why = f"{what} is in this optimizer already, and would be moved twice by each step."
        fix = f"# leave {name or 'it'} out here, or out of the optimizer where it is made"
    return card("parameters-twice", f"{what} was given to the optimizer twice", why, fix, places, bool(name))


def _are(module: torch.nn.Module, group: Any) -> bool:
    """Return whether a group holds the parameters of a module, all of them and no others."""
    given = group["params"] if isinstance(group, dict) else []
    own = list(torch.nn.Module.parameters(module))
    return bool(own) and [id(it) for it in own] == [id(it) for it in given]


def _paths(module: torch.nn.Module, name: str, path: str) -> list[str]:
    """Return all names that a module has for one of its parameters, "path.layer.weight"."""
    pairs = list(torch.nn.Module.named_parameters(module, remove_duplicate=False))
    own = next((it for key, it in pairs if dotted(path, key) == name), None)
    return [key for key, it in pairs if it is own and own is not None]


def _tied(s: Situation, name: str) -> list[Place]:
    """Return the line that gives a layer the parameter of another: `self.out.weight = self.embed.weight`."""
    last = name.rpartition(".")[2] or "weight"
    if not any(len(_paths(it, name, path)) > 1 for call in s.calls for path, it in modules(call) if name):
        return []
    return only_line(
        s,
        "shared from here",
        lambda it: (
            isinstance(it, ast.Assign)
            and isinstance(it.value, ast.Attribute)
            and it.value.attr == last
            and any(isinstance(to, ast.Attribute) and to.attr == last for to in it.targets)
        ),
    )


RULES = (
    Rule(ValueError, r"some parameters appear in more than one parameter group", _twice),
    Rule(Warning, r"parameter group with duplicate parameters", _twice),
)
