"""Names by which an answer could find and change what observes it, and those that answers need.

Imports are allowed by a list: any other module may hold, run or hide any name. All else is told by what it is called.
"""

from __future__ import annotations

from functools import cache

import torch


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# What answers import, with all in it.
FREE = _set(
    "__future__ abc bisect cmath collections contextlib copy decimal enum fractions functools heapq io itertools json "
    "math matplotlib numbers numpy operator pandas pathlib pprint random re scipy seaborn sklearn statistics string "
    "textwrap time torch tqdm tracemalloc warnings"
)
# Of these modules the names given.
PARTLY = {
    "dataclasses": _set("dataclass field fields replace asdict astuple KW_ONLY"),
    "gc": _set("collect enable disable"),
    "sys": _set("version version_info getsizeof maxsize float_info platform"),
    "types": _set("SimpleNamespace MappingProxyType"),
    "typing": _set("Any Callable Iterable Iterator Sequence Mapping NamedTuple Optional Union Literal TypeVar Self"),
    "weakref": _set("ref WeakKeyDictionary WeakValueDictionary WeakSet"),
}
# The course's modules that draw and count graphs, as lessons show them. Of the package itself the public names.
COURSE = ("course_utils.graph.", "course_utils.pictures.")
# What other modules hold as attributes: `warnings.sys` is `sys`.
MODULES = _set("builtins ctypes gc importlib inspect linecache os sys threading")
# Parts of PyTorch that run texts, change what PyTorch does, or run a module past its own attributes.
TORCH = (
    *("torch.fx", "torch.jit", "torch.library", "torch.load", "torch.ops", "torch.overrides", "torch.package"),
    *(
        "torch.classes",
        "torch.compile",
        "torch.export",
        "torch.onnx",
        "torch.autograd.variable",
        "torch.multiprocessing",
        "torch.serialization",
        "torch.nn.modules.module",
    ),
    *("torch.utils.cpp_extension", "torch.utils.hooks", "torch.utils.backend_registration", "torch.profiler"),
)
# Builtins, and what IPython adds.
CALLS = _set("vars globals locals exec eval compile breakpoint get_ipython input")
BY_NAME = _set("getattr setattr delattr attrgetter methodcaller")
# Parts of frames, generators, code and closures, and what finds objects by themselves.
FRAMES = _set(
    "_getframe f_locals f_back f_globals f_builtins f_code f_trace tb_frame tb_next gi_frame gi_code cr_frame cr_code "
    "ag_frame ag_code cell_contents co_code co_consts settrace setprofile get_objects get_referrers get_referents mro "
    "get_type_hints walk_stack walk_tb getframeinfo currentframe run_line_magic run_cell ctypeslib "
    "run_backward ImperativeEngine"
)
# Parts of tensors and nodes that lessons read. No observer hangs on them.
HARMLESS = _set("_version _sequence_nr _input_metadata _base _replace _asdict _fields")
SPECIAL = _set(
    "init name qualname doc version len iter next call add radd sub rsub mul rmul matmul rmatmul neg truediv rtruediv "
    "pow rpow mod floordiv abs pos invert and or xor getitem setitem delitem contains enter exit repr str format eq ne "
    "lt le gt ge hash bool float int index iadd isub imul itruediv reversed round new post_init file debug all "
    "annotations slots missing match_args array array_priority array_ufunc deepcopy copy setattr getattr main"
)
# Written to what is not one's own, they replace what observes it.
METHODS = _set("forward backward step run_backward zero_grad register_hook register_forward_hook")
# Methods that PyTorch or Python calls in place of another's.
OVERRIDES = _set(
    "__torch_function__ __torch_dispatch__ __getattribute__ __del__ __instancecheck__ __subclasscheck__ __class__ "
    "__signature__ __reduce__ __reduce_ex__ __set_name__ __init_subclass__ __prepare__"
)


@cache
def torchs_own() -> frozenset[str]:
    """Return the names with a leading underscore in modules, tensors, optimizers and Functions."""
    kinds = (torch.nn.Module, torch.Tensor, torch.optim.Optimizer, torch.autograd.Function)
    names = {name for kind in kinds for name in dir(kind)} | set(vars(torch.nn.Module()))
    return frozenset(name for name in names if name.startswith("_") and not special(name)) - HARMLESS


def special(name: str) -> bool:
    """Say whether a name has the form of Python's own, as `__init__` has."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def telling(name: str) -> bool:
    """Say whether a name tells of machinery wherever it stands, also as a text."""
    if special(name):
        return name[2:-2] not in SPECIAL
    return name in FRAMES or name in torchs_own()


def private(name: str) -> bool:
    """Say whether a name is one that its owner keeps to itself, and lessons do not read."""
    known = name in HARMLESS or name == "_" or name.startswith(("_saved_", "_raw_saved_", "_foreach_"))
    return name.startswith("_") and not special(name) and not known


def importable(module: str, name: str = "") -> bool:
    """Say whether answers may import a module, or a name from it."""
    top = module.partition(".")[0]
    path = f"{module}.{name}" if name else module
    if any(private(part) for part in path.split(".")):
        return False
    if top == "course_utils":
        return (module == top and name not in ("checks", "grading", "*")) or f"{path}.".startswith(COURSE)
    if top in PARTLY:
        return not name or name in PARTLY[top]
    return top in FREE and not any(path == one or path.startswith(f"{one}.") for one in TORCH)
