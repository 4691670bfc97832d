"""Names by which an answer could find and change what observes it, and those that answers need.

Imports are allowed by a list: any other module may hold, run or hide any name. All else is told by what it is called.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch

from course_utils.checks import observers

_OWN = re.compile(r"^_[a-z]\w*", re.MULTILINE)  # what stands at the top of a module


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# What answers import, with all in it.
FREE = _set(
    "__future__ abc bisect cmath collections contextlib copy decimal enum fractions functools graphlib heapq io "
    "itertools json math matplotlib numbers numpy operator pandas pathlib pprint random re scipy seaborn sklearn "
    "statistics string textwrap torch tqdm tracemalloc warnings"
)
# Of these modules the names given.
PARTLY = {
    "dataclasses": _set("dataclass field fields replace asdict astuple KW_ONLY"),
    "gc": _set("collect enable disable"),
    "sys": _set("version version_info getsizeof maxsize float_info platform"),
    "threading": _set("local"),
    "types": _set("SimpleNamespace MappingProxyType ModuleType"),
    "typing": _set("Any Callable Iterable Iterator Sequence Mapping NamedTuple Optional Union Literal TypeVar Self"),
    "weakref": _set("ref WeakKeyDictionary WeakValueDictionary WeakSet"),
}
# The course's modules that draw graphs and follow them, as lessons show them. Of the package itself the public names.
COURSE = ("course_utils.graph.alive.", "course_utils.graph.own.", "course_utils.graph.trace.", "course_utils.pictures.")
# Modules that are handed out by others: `warnings.sys` is `sys`, `torch.os` is `os`. Common words are none.
MODULES = (
    frozenset(name for name in sys.stdlib_module_names if not name.startswith("_"))
    - FREE
    - _set("array calendar cmd code codecs copy fileinput html mailbox numbers platform profile queue resource")
    - _set("sched secrets select signal site stat string struct symbol test this time token trace types typing uu")
) | _set("builtins sys gc")
# The modules of PyTorch that answers need. Any other may run texts, start threads, or change what PyTorch does.
TORCH = (
    *("torch.accelerator", "torch.amp", "torch.autograd", "torch.backends", "torch.cpu", "torch.cuda"),
    *("torch.distributions", "torch.fft", "torch.func", "torch.functional", "torch.linalg", "torch.masked"),
    *("torch.nested", "torch.nn", "torch.optim", "torch.random", "torch.sparse", "torch.special", "torch.testing"),
    *("torch.utils.checkpoint", "torch.utils.data", "torch.utils.flop_counter", "torch.version"),
)
# Parts of these, and of PyTorch itself, that are not free.
NOT_FREE = (
    *("torch.autograd.variable", "torch.autograd.profiler", "torch.autograd.profiler_util"),
    *("torch.nn.modules.module", "torch.nn.parallel", "torch.cond", "torch.compile", "torch.load", "torch.from_file"),
    *("numpy.lib", "numpy.load", "numpy.fromfile", "numpy.memmap", "numpy.testing", "numpy.f2py", "numpy.core"),
    *("numpy.ctypeslib", "numpy.distutils", "pandas.eval", "pandas.read_pickle", "string.Formatter"),
    *("io.open", "io.open_code", "io.FileIO", "tqdm.contrib", "functools.singledispatch"),
    *("functools.singledispatchmethod", "functools.update_wrapper", "scipy.LowLevelCallable"),
    *("torch.autograd.profiler_legacy", "torch.autograd.graph.allow_mutation_on_saved_tensors"),
    "torch.autograd.graph.disable_saved_tensors_hooks",
)
# What PyTorch takes over from its C++ part: classes that compile programs, run or guard. These few are for everybody.
OF_C = _set("Size device dtype finfo iinfo layout memory_format qscheme Generator default_generator OutOfMemoryError")
# Builtins, and what IPython adds.
CALLS = _set("vars globals locals exec eval compile breakpoint get_ipython input open")
BY_NAME = _set("getattr setattr delattr attrgetter methodcaller wraps __setattr__ __delattr__ __getattr__")
# Of these the name is the first argument; else the second, but for a bound method's, and `wraps` may be given names.
FIRST = _set("attrgetter methodcaller __setattr__ __delattr__ __getattr__")
# What looks at tensors past PyTorch's operations, which observers count.
BESIDE = _set(
    "numpy data_ptr frombuffer untyped_storage storage __array__ __dlpack__ as_subclass from_numpy from_dlpack tolist "
    "saved_tensors_hooks save_on_cpu resize_ resize_as_ set_"
)
# Parts of frames, generators, code and closures, and what finds objects by themselves.
FRAMES = _set(
    "_getframe f_locals f_back f_globals f_builtins f_code f_trace tb_frame tb_next gi_frame gi_code cr_frame cr_code "
    "ag_frame ag_code cell_contents co_code co_consts settrace setprofile get_objects get_referrers get_referents mro "
    "get_type_hints walk_stack walk_tb getframeinfo currentframe run_line_magic run_cell ctypeslib "
    "run_backward ImperativeEngine getouterframes getinnerframes f_lasti f_lineno f_trace_opcodes tb_lineno tb_lasti "
    "allow_mutation_on_saved_tensors disable_saved_tensors_hooks gi_yieldfrom cr_await cr_origin ag_await "
    "get_field vformat get_value resolve_name import_module exec_module "
    "load_module find_spec CompilationUnit ExcludeDispatchKeyGuard DisableTorchFunction DisableTorchFunctionSubclass "
    "DisableTorchFunctionMode open write_bytes memmap open_memmap LowLevelCallable read_pickle stop_tracing "
    "stacklevel lineno filename set_printoptions"
)
# Parts of a graph's nodes, and of what they save. Observers hang on these.
NODES = _set("metadata next_functions register_prehook register_hooks unpack_hook")
# Parts of tensors and nodes that lessons read. No observer hangs on them.
HARMLESS = _set("_version _sequence_nr _input_metadata _base _is_view _replace _asdict _fields")
SPECIAL = _set(
    "init name qualname doc version len iter next call add radd sub rsub mul rmul matmul rmatmul neg truediv rtruediv "
    "pow rpow mod floordiv abs pos invert and or xor getitem setitem delitem contains enter exit repr str format eq ne "
    "lt le gt ge hash bool float int index iadd isub imul itruediv reversed round new post_init file debug all "
    "slots missing array array_priority array_ufunc deepcopy copy setattr getattr main"
)
# Names of Python's own that a notebook gives a value, and that nothing reads.
TOLD = _set("__all__ __version__ __author__ __doc__")
# Written to what is not one's own, they replace what observes it.
METHODS = _set("forward backward step run_backward zero_grad register_hook register_forward_hook callback")
# Methods that PyTorch or Python calls in place of another's.
OVERRIDES = _set(
    "__torch_function__ __torch_dispatch__ __getattribute__ __del__ __instancecheck__ __subclasscheck__ __class__ "
    "__signature__ __reduce__ __reduce_ex__ __set_name__ __init_subclass__ __prepare__"
)


# Entries of `__slots__`: what an object of an answer's own class has room for.
SLOTS = _set("__weakref__ __dict__")


@cache
def observers_own() -> frozenset[str]:
    """Return the names with a leading underscore in what observes answers: no class of an answer's makes them free."""
    homes = [home for name, home in list(sys.modules.items()) if name.startswith(("torch.autograd", "torch.utils"))]
    names = {name for home in homes for name in vars(home)}
    for file in Path(observers.__path__[0]).glob("*.py"):
        names |= set(_OWN.findall(file.read_text(encoding="utf-8")))
    return frozenset(name for name in names if private(name))


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


def begins_none(text: str) -> bool:
    """Say whether no name that is told begins like this text: a name that is put together from it is none either."""
    told = FRAMES | NODES | METHODS | BESIDE | BY_NAME | CALLS | MODULES | torchs_own()
    return text[:1].isalpha() and not any(name.startswith(text) for name in told)


def private(name: str) -> bool:
    """Say whether a name is one that its owner keeps to itself, and lessons do not read."""
    known = name in HARMLESS or name == "_" or name.startswith(("_saved_", "_foreach_"))
    return name.startswith("_") and not special(name) and not known


def importable(module: str, name: str = "") -> bool:
    """Say whether answers may import a module, or a name from it: by what it is called, and by what that stands for."""
    path = f"{module}.{name}" if name else module
    if any(private(part) for part in path.split(".")):
        return False
    if _begins(path, NOT_FREE):
        return False
    top = module.partition(".")[0]
    if top == "course_utils":
        public = module == top and name not in ("checks", "grading", "graph", "*")
        return public or (f"{path}.".startswith(COURSE) and _stands_for_free(path))
    if top in PARTLY:
        return not name or name in PARTLY[top]
    return top in FREE and _stands_for_free(path)


def _begins(path: str, those: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in those)


@cache
def _stands_for_free(path: str) -> bool:
    """Say whether each part of a path is something free, as far as its modules are known here without an answer."""
    parts = path.split(".")
    thing: object = sys.modules.get(parts[0])
    if thing is None and parts[0] in sys.stdlib_module_names & FREE:
        thing = import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if thing is torch and part in dir(torch._C) and part not in OF_C and part[0].isupper():
            return False
        if thing is torch and part in ("fork", "wait", "import_ir_module", "import_ir_module_from_buffer", "parse_ir"):
            return False
        inner = sys.modules.get(".".join(parts[:number])) if isinstance(thing, ModuleType) else None
        thing = getattr(thing, part, None) if inner is None else inner
        if isinstance(thing, ModuleType) and not _free(thing.__name__, ""):
            return False
    if thing is None and parts[-1] in MODULES:
        return False
    home = getattr(thing, "__module__", None)
    return not (isinstance(home, str) and callable(thing)) or _free(home.lstrip("_"), getattr(thing, "__name__", ""))


def _free(module: str, name: str) -> bool:
    """Say whether what really is a module, or a part of it, is free."""
    top = module.lstrip("_").partition(".")[0]
    if top == "torch":
        known = _begins(module, TORCH) or module in ("torch", "torch.utils", "torch.types")
        return name != "" or (known and not _begins(module, NOT_FREE))
    if top == "course_utils":
        return f"{module}.".startswith(COURSE) or (not name and module in ("course_utils", "course_utils.graph"))
    if top == "builtins":
        return name not in CALLS | BY_NAME and name != ""
    return top in FREE or top not in sys.stdlib_module_names or (top in PARTLY and name in PARTLY[top])


@cache
def handed_out(module: str) -> frozenset[str]:
    """Return what `from module import *` binds, of a module that is known here without an answer."""
    known = sys.modules.get(module)
    if known is None and module in sys.stdlib_module_names & FREE:
        known = import_module(module)
    names = getattr(known, "__all__", None) or [name for name in dir(known) if not name.startswith("_")]
    return frozenset(names) if known is not None else frozenset()


@cache
def is_module(path: str) -> bool:
    """Say whether a path is that of a module: a loaded one, or one that may be imported whole."""
    return path in sys.modules or path in FREE or path in PARTLY


@cache
def is_tensor(path: str) -> bool:
    """Say whether a path is that of a class of tensors."""
    top, *parts = path.split(".")
    thing: object = sys.modules.get(top)
    for part in parts:
        thing = getattr(thing, part, None)
    return isinstance(thing, type) and issubclass(thing, torch.Tensor)
