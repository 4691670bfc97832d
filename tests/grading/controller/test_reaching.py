"""The look at what cells reach for: it names what forgers use, and says nothing of what is taught."""

import json
import time
from pathlib import Path

import pytest

from course_utils.checks.registry import exercises
from course_utils.grading.controller.reaching import MAX_LOOKED, TOO_LONG, Looked, look
from tests.answers import RIGHT, right_source_of

ROOT = Path(__file__).parents[3]

FORGING = {
    "'{0.gi_frame}'.format(x), '{a[f_back]} {b}'": {"gi_frame", "f_back"},
    "import gc\nfor x in gc.get_objects(): pass": {"gc.get_objects"},
    "from gc import get_referrers": {"gc.get_referrers"},
    "import gc as c\nfind = c": {"gc"},
    "import sys\nsys._getframe(1).f_locals": {"sys._getframe", "f_locals"},
    "import ctypes": {"ctypes"},
    "import threading\nthreading.Thread(target=f)": {"threading.Thread"},
    "from threading import Thread, local": {"threading.Thread"},
    "from unittest import mock": {"unittest.mock"},
    "import importlib.util": {"importlib.util"},
    "import warnings\nwarnings.sys": {"warnings.sys"},
    "import torch\ntorch._C._len_torch_function_stack()": {"torch._C", "torch._C._len_torch_function_stack"},
    "from torch import _C": {"torch._C"},
    "import torch.overrides": {"torch.overrides"},
    "from torch import nn\nnn.Module.forward(m, x)": {"torch.nn.Module.forward"},
    "import torch\ntorch.Tensor.backward = f": {"torch.Tensor.backward ="},
    "from course_utils.checks import data": {"course_utils.checks.data"},
    "from course_utils.checks.observers.runs import notice": {"course_utils.checks.observers.runs.notice"},
    "import course_utils\ncourse_utils.checks.data": {"course_utils.checks", "course_utils.checks.data"},
    "f.__closure__[0].cell_contents": {"__closure__", "cell_contents"},
    "f.__globals__": {"__globals__"},
    "model._forward_hooks.clear()": {"_forward_hooks"},
    "model.forward = f": {".forward ="},
    "del model.forward": {".forward ="},
    "type(model).forward(model, x)": {"type(...).forward"},
    "model.__class__.forward(model, x)": {"__class__"},
    "vars(model).pop('forward')": {"vars"},
    "getattr(model, '_back' + 'ward_hooks')": {"getattr with a computed name"},
    "getattr(model, '_backward_hooks')": {"_backward_hooks"},
    "setattr(model, 'forward', f)": {".forward ="},
    "look = getattr": {"getattr"},
    "from operator import attrgetter\nattrgetter('a.__dict__')(x)": {"__dict__"},
    "{'__torch_function__': f}": {"__torch_function__"},
    "class T:\n    def __torch_function__(self): pass": {"__torch_function__"},
    "class T:\n    def __del__(self): pass": {"__del__"},
    "match x:\n    case Module(_forward_hooks=hooks): pass": {"_forward_hooks"},
    "try: f()\nexcept Exception as e: e.__traceback__.tb_frame": {"__traceback__", "tb_frame"},
    "exec('1')": {"exec"},
    "__builtins__": {"__builtins__"},
    "__import__('sys')": {"__import__"},
    "\uff56ars(model)": {"vars"},
    "get_ipython().user_ns": {"get_ipython"},
    "%%python\nimport x": {"%python", "x"},
    "/exec 'model'": {"exec"},
    "x = !ls\nsys._getframe()": {"_getframe", "sys"},
    "self._hooks = []\nmodel._told": {"_told"},
    "from operator import attrgetter as part\npart('a' + 'b')(x)": {"attrgetter with a computed name"},
    "from operator import attrgetter as part\nfrom math import floor as part\npart(x)": {
        "attrgetter with a computed name"
    },
    "import operator\nparts = [operator.methodcaller]": {"operator.methodcaller"},
    "from torch import threading": {"torch.threading"},
    "from contextlib import sys": {"contextlib.sys"},
    "import enum, dataclasses\nenum.sys, dataclasses.sys": {"enum.sys", "dataclasses.sys"},
    "import torch\nlibrary = torch\nlibrary.os": {"torch.os"},
    "import torch\ndef f(library=torch): pass": {"torch passed on"},
    "import torch\n(lambda: torch)().os": {"torch passed on", "os"},
    "import string\nstring.Formatter().get_field": {"string.Formatter", "get_field"},
    "from torch import CompilationUnit": {"torch.CompilationUnit"},
    "import torch\ntorch.ops.aten.add": {"torch.ops", "torch.ops.aten", "torch.ops.aten.add"},
    "loss.grad_fn.metadata.clear()": {"metadata"},
    "node.register_prehook(f)": {"register_prehook"},
    "node._raw_saved_self.register_hooks(f, f)": {"_raw_saved_self", "register_hooks"},
    "[n for n, _ in y.grad_fn.next_functions]": {"next_functions"},
    "from torch.autograd.graph import allow_mutation_on_saved_tensors": {
        "torch.autograd.graph.allow_mutation_on_saved_tensors"
    },
    "__name__ = 'torch.nn'": {"__name__ ="},
    "import json as __name__\nfrom json import loads as __file__": {"__name__ =", "__file__ ="},
    "def __name__(): pass": {"__name__ ="},
    "for __file__ in x: pass": {"__file__ ="},
    "from torch.utils import _python_dispatch": {"torch.utils._python_dispatch"},
    "from course_utils.graph.saved import kept": {"course_utils.graph.saved.kept"},
    "from tqdm.contrib.concurrent import thread_map": {"tqdm.contrib.concurrent.thread_map"},
    "import io\nio.FileIO(path)": {"io.FileIO"},
    "open(path)": {"open"},
    "from functools import singledispatch": {"functools.singledispatch"},
    "from builtins import *\ng = getattr": {"builtins.*", "getattr"},
    "import torch\nclass Quiet(torch.Tensor): pass": {"a subclass of torch.Tensor"},
    "from torch import Tensor as T\nQuiet = type('Quiet', (T,), {})": {"a subclass of torch.Tensor"},
    "super(type(model), model).forward(x)": {"super of another's"},
    "object.__setattr__(model, 'forward', f)": {".forward ="},
    "class torch: pass\nimport torch\ntorch.os": {"torch.os"},
    "def f(self): self.forward = g": {".forward ="},
    "'{0.__class__}'.format(x)": {"__class__"},
    "Held.__annotations__ = {text: int}": {"__annotations__"},
    "class Has:\n    __match_args__ = (name,)": {"__match_args__"},
    "Held = type('Held', (), {'__anno' + 'tations__': {text: int}})": {"type with a computed name"},
    "from functools import update_wrapper": {"functools.update_wrapper"},
    "from functools import wraps as like\nlike(x, [name])(y)": {"wraps with a computed name"},
    "import functools\nfunctools.wraps(x, updated=[name])(y)": {"wraps with a computed name"},
    "stack.callback(setattr, model, 'training', True)": {"setattr"},
    "from contextlib import ExitStack\nwith ExitStack() as s: s.callback(setattr, model, 'forward', f)": {".forward ="},
    "from contextlib import ExitStack\nwith ExitStack() as s: s.callback(setattr, model, name, f)": {"setattr"},
    "from contextlib import ExitStack\nwith ExitStack() as s: pass\ns = Own()\ns.callback(setattr, m, 'x', 1)": {
        "setattr"
    },
    "from contextlib import ExitStack\nwith ExitStack() as s: s.callback = f": {".callback ="},
    "getattr(model, f'_forward{x}')": {"getattr with a computed name"},
    "setattr(model, f'for{x}', f)": {"setattr with a computed name"},
    "getattr(model, f'{x}weight')": {"getattr with a computed name"},
    "import torch\ngetattr(torch, f'zzz{x}')": {"getattr with a computed name", "torch passed on"},
    "def f(x): return getattr(x, '__weakref__')": {"__weakref__"},
    "import contextlib\nclass R(contextlib.redirect_stdout): _stream = 'modules'": {
        "a subclass of contextlib.redirect_stdout"
    },
}
INNOCENT = (
    "import gc, sys\ngc.collect()\nsys.version",
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nF.linear(x, w).backward()",
    "from course_utils import check, trace\nfrom course_utils.graph.alive import PeakMemory",
    "%matplotlib inline\n%time f(x)\n!pip list\nx.grad = None",
    "%%time\nf(x)",
    "model.weight.grad = None\nmodel.head = nn.Linear(2, 2)\nself.forward = f",
    "class Net(Module):\n    def __init__(self):\n        super().__init__()\n        self._n = 0\nnet._n",
    "class T:\n    def backward(self): pass\nT.backward = f",
    "x._version, node._sequence_nr(), node._saved_self, type(x).__name__, x.__class__.__name__",
    "getattr(node, 'inputs', ())\ntorch.backends.x.y = True",
    "if __name__ == '__main__': print('sys.exit is text, as is `_getframe`')",
    "'f_locals in a text that says more'\n'''__closure__'''",
    "def f(:\n    import broken",
    "import numpy as np\nimport operator as o\nnp.array(x), sorted(y, key=o.attrgetter('name')), map(np.sin, x)",
    "import torch, copy\nfrom torch import nn, optim\noptim.SGD(copy.copy(model).parameters(), dtype=torch.float64)",
    "from torch import *\nfrom math import *\nsqrt(2), tensor(1.0).trace(), stack([x])",
    "import torch\nfrom functools import partial, reduce\npartial(torch.sum, dim=0), reduce(torch.add, x)",
    "import torch.nn.functional as F\nact = F.relu\nisinstance(m, torch.nn.modules.batchnorm.BatchNorm2d)",
    "class Net(torch.nn.Module):\n    def __init__(self): super(Net, self).__init__()\nimport torch",
    "import copy\ncopy = copy.deepcopy(model)\nf(copy)",
    "f'{x.grad}, {model.weight:.3f}', '{:.2f}'.format(y), 'see torch.Tensor.backward'",
    "from torch.utils.data import DataLoader, TensorDataset\nfrom torch.utils.checkpoint import checkpoint",
    "x.stack, x.trace(), x.code, x.frame_rate, node.name()",
    "from functools import wraps\ndef d(f):\n    @wraps(f)\n    def g(): pass\n    return g\ntype('A', (), {'n': 1})",
    "__all__ = ['f']\nclass A:\n    def __add__(self, other): pass\n    __radd__ = __iadd__ = __add__",
    "class Node:\n    def __init__(self): self.next_functions = self.metadata = []\nNode().next_functions",
    "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): f()",
    "from contextlib import ExitStack as S\nwith S() as s:\n    s.callback(setattr, module, 'training', True)",
    "import contextlib\nwith contextlib.ExitStack() as s:\n    s.callback(module.train, module.training)",
    "class Node:\n    __slots__ = ('inputs', '__weakref__')",
    "getattr(self, f'weight{number}'), setattr(self, f'layer_{number}', 1)",
    "import threading, graphlib, types\nthreading.local(), graphlib.TopologicalSorter(), types.ModuleType('engine')",
    "x._is_view()",
    "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int = 0\n    __slots__ = ('x',)",
)


@pytest.mark.parametrize("source", FORGING)
def test_it_names_what_forgers_use(source: str) -> None:
    assert look([source])[0].reaches == FORGING[source]


@pytest.mark.parametrize("source", INNOCENT)
def test_it_says_nothing_of(source: str) -> None:
    assert not look([source])[0].reaches


@pytest.mark.parametrize("name", RIGHT)
def test_it_says_nothing_of_right_answers(name: str) -> None:
    assert not look([right_source_of(name)])[0].reaches - set(exercises()[name].reaches)


# What lessons do in cells of their own, and teach nobody to do: 09 notes the mode of whatever its patient runs, 11
# changes how its values begin, collects its engine, runs it and shows its text.
OWN_CELLS = {
    "09_practical_checklist": {
        "torch.nn.modules.module",
        "torch.nn.modules.module.register_module_forward_pre_hook",
    },
    "11_build_your_own": {
        *("exec", "html.escape", "inspect", "inspect.getsource", "__init__ ="),
        *("IPython.display.display", "IPython.display.HTML"),
    },
}


@pytest.mark.parametrize("folder", ["notebooks", "exercises", "solutions"])
def test_it_says_nothing_of_what_lessons_teach(folder: str) -> None:
    for file in sorted((ROOT / folder).glob("*.ipynb")):
        cells = [it for it in json.loads(file.read_text())["cells"] if it["cell_type"] == "code"]
        listed = {name for it in exercises().values() if it.lesson == file.stem for name in it.reaches}
        reaches = {name for found in look(["".join(it["source"]) for it in cells]) for name in found.reaches}
        shown = OWN_CELLS.get(file.stem, set()) if folder == "notebooks" else set()
        assert reaches <= listed | shown, file.name


def test_names_are_shared_by_the_cells_of_a_notebook() -> None:
    sources = ["import sys as s", "class Own:\n    def __init__(self): self._kept = 1", "s.settrace(f)\nown._kept"]
    assert [set(found.reaches) for found in look(sources)] == [set(), set(), {"sys.settrace"}]


def test_a_class_of_ones_own_does_not_hide_the_names_of_pytorch() -> None:
    source = "class Own:\n    def __init__(self): self._forward_hooks = {}\nmodel._forward_hooks"
    assert look([source])[0].reaches == {"_forward_hooks"}


@pytest.mark.parametrize(
    "source", ["x.numpy()", "from numpy import asarray as a\na(x)", "import numpy as n\nn.ones(2)"]
)
def test_what_takes_numbers_out_of_pytorch_is_told_apart(source: str) -> None:
    (found,) = look([source])
    assert (found.beside, found.reaches) == ({"numpy"}, set())


def test_memory_that_no_operation_makes_is_told_apart() -> None:
    (found,) = look(["import torch\ntorch.frombuffer(bytearray(8), dtype=torch.float64)"])
    assert (found.beside, found.reaches) == ({"frombuffer"}, set())


def test_it_says_what_a_cell_uses() -> None:
    assert look(["def f(x):\n    y = g(x)\n    return h(y)"])[0].uses == {"g", "h"}


def test_it_says_what_a_cell_defines() -> None:
    assert look(["def a(): pass\nb, c = 1, 2\nclass D: e = 1\nf: int = 1"])[0].binds == {"a", "b", "c", "D", "f"}


DEEP = (
    *("(" * 90_000, "-" * 90_000 + "1", "a" + ".a" * 45_000, "1" + "+1" * 45_000, "not " * 20_000, "\0", "[" * 150),
    "x = '{" + "." * 90_000 + "'",
)


def test_a_source_of_any_size_or_depth_costs_little() -> None:
    began = time.process_time()
    assert look(["x" * (MAX_LOOKED + 1), "gc"]) == [Looked(frozenset({TOO_LONG}))] * 2
    for source in DEEP:
        assert len(look([source])) == 1
    widest = "a(b.c)\n" * (MAX_LOOKED // 7)
    assert not look([widest])[0].reaches
    assert time.process_time() - began < 20, "seconds that no slow machine needs"
