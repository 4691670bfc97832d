"""Cells that win a point for a wrong `slope` from a usual grader: one that judges in the process that runs the cells.

naive.py holds four such graders. Each attack names the one that it beats, and a test shows that it does.
"""

from dataclasses import dataclass

from tests.grading.submissions import WRONG


@dataclass(frozen=True)
class Attack:
    """A cell, and the function of naive.py from which it gets the point."""

    name: str
    cell: str
    beats: str


def complete(source: str) -> str:
    """Return a cell that defines a wrong answer, too."""
    source = source.lstrip("\n")
    return source if "def slope" in source or "\nslope = " in source else source + WRONG


# The judge stands beside the answer.
_BESIDE = {
    "patch the judge": """
import course_utils.checks.examine as e
from course_utils.checks.exercise import Verdict
e.judge = lambda exercise, *rest: Verdict(exercise.id, 'correct', exercise.points)
""",
    "patch all": """
import builtins
builtins.all = lambda *anything: True
""",
    "patch a lesson": """
import course_utils.checks.judges.lesson_00_start_here.slope as l
from course_utils.checks.exercise import Finding
l.right_value = lambda *rest: Finding('value', True)
l.close = lambda *rest: True
""",
    "change a function's code": """
import course_utils.checks.judges.lesson_00_start_here.slope as l
l.close = lambda *rest: True
l.right_value.__code__ = (lambda *rest: l.Finding('value', True)).__code__
l.right_value.__globals__['l'] = l
""",
    "change the exercise": """
import gc
from course_utils.checks.exercise import Exercise
import course_utils.checks.registry as r
r.exercises()
for thing in gc.get_objects():
    if type(thing) is Exercise:
        object.__setattr__(thing, 'judge', lambda case, seen: [])
""",
    "patch autograd.grad": """
torch.autograd.grad = lambda y, x, *rest: (x.detach() * 0 - 1,)
""",
    "take the judge from the stack": """
import sys
def slope(x):
    frame = sys._getframe()
    while 'exercise' not in frame.f_locals:
        frame = frame.f_back
    object.__setattr__(frame.f_locals['exercise'], 'judge', lambda case, seen: [])
    return None
""",
    "patch observe": """
import course_utils.checks.examine as e
def observe(observer, answer, case, *rest):
    x = case.given['x']
    return {'returned': e.Array.of(3 * x.tensor() ** 2), 'x': x, 'grad': None}, []
from course_utils.checks.data import Array
e.Array, e.observe = Array, observe
""",
    "patch decode": """
import course_utils.checks.examine as e
from course_utils.checks.data import Array
before = e.decode
def decode(message):
    seen = before(message)
    if type(seen) is dict and 'returned' in seen:
        seen['returned'] = Array.of(3 * seen['x'].tensor() ** 2)
    return seen
e.decode = decode
""",
    "patch the observer": """
import course_utils.checks.observers.lesson_00_start_here.slope as o
before = o.observe
def observer(answer, case):
    return before(lambda x: 3 * x.detach() ** 2, case)
o.observe = observer
""",
    "a new name in the course": """
import course_utils.checks.examine as e
e.all = lambda *anything: True
""",
    "patch a method of tensors": """
torch.Tensor.__pow__ = lambda self, n: -self
""",
    "a class that always agrees": """
import course_utils.checks.exercise as e
e.Finding.ok = property(lambda self: True, lambda self, value: None)
""",
    "patch the verdict": """
import course_utils.checks.exercise as e
e.Verdict.score = property(lambda self: self.points)
""",
    "saved tensor hooks that stay": """
hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x * 0)
hooks.__enter__()
def slope(x):
    return x.detach() * 0
""",
}
_WATCHING = """
import sys
def watch(frame, event, value):
    if event == 'return' and type(value) is torch.Tensor and 'found' in frame.f_locals: found.append(value)
    return watch
found = []
sys.set{by}(watch)
def slope(x):
    sys.set{by}(None)
    return found[-1] if found else None
"""
# A cell of tests is run after the learner's, and what it displays is the score.
_DISPLAYED = {
    "a display hook of one's own": """
get_ipython().displayhook.__class__.__call__ = lambda self, value=None: None
""",
    "a formatter of one's own": """
get_ipython().display_formatter.format = lambda *a, **k: ({'text/plain': '1.0'}, {})
""",
    "input transformers": """
get_ipython().input_transformers_post.append(lambda lines: ['1.0\\n'] if 'import reference\\n' in lines else lines)
""",
    "syntax transformers": """
import ast
class Same(ast.NodeTransformer):
    def visit_Attribute(self, node):
        return ast.Name('slope', ast.Load()) if node.attr == 'slope' else node
get_ipython().ast_transformers.append(Same())
""",
    "an event before the cell": """
def replace(*anything):
    import reference
    reference.slope = slope
get_ipython().events.register('pre_run_cell', replace)
""",
    "an event after the cell": """
get_ipython().events.register('post_run_cell', lambda *a: print('Out[99]: 1.0'))
""",
    "an exit handler that prints": """
import atexit
atexit.register(lambda: print('Out[99]: 1.0'))
""",
    "a thread that prints last": """
import threading, time
def late():
    time.sleep(0.3)
    print('Out[99]: 1.0')
threading.Thread(target=late).start()
""",
    "leave at once": """
import os
os._exit(0)
""",
    "leave when asked": """
import os
def slope(x): os._exit(0)
""",
    "SystemExit when asked": """
def slope(x): raise SystemExit(0)
""",
    "silent errors": """
get_ipython().showtraceback = lambda *a, **k: None
def slope(x): raise ValueError
""",
    "handlers of errors": """
get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)
def slope(x): raise ValueError
""",
    "closed streams": """
import os
os.closerange(0, 3)
""",
    "a stream that corrects": """
import sys
class Better:
    def __init__(self, stream): self.stream = stream
    def write(self, text): return self.stream.write(text.replace('0.0', '1.0'))
    def flush(self): self.stream.flush()
sys.stdout = Better(sys.stdout)
""",
    "the reference itself": """
try: from reference import slope
except ImportError: pass
if 'slope' not in dir():
    def slope(x): return x * 0 - 1
""",
    "patch the reference": """
try: import reference
except ImportError: import course_utils.checks.observers.lesson_00_start_here.slope as reference
reference.slope = reference.observe = lambda x: x * 0 - 1
""",
    "another module in its place": """
import sys, types
sys.modules['reference'] = types.SimpleNamespace(slope=lambda x: x * 0 - 1)
""",
    "an importer": """
import importlib.machinery, sys, types
class Importer:
    def find_spec(self, name, *rest):
        return importlib.machinery.ModuleSpec(name, self) if name == 'reference' else None
    def create_module(self, spec): return types.SimpleNamespace(slope=lambda x: x * 0 - 1, __spec__=spec)
    def exec_module(self, module): pass
sys.meta_path.insert(0, Importer())
""",
    "a file in front of it": """
import os, sys, tempfile
folder = tempfile.mkdtemp()
with open(folder + '/reference.py', 'w') as file: file.write('slope = lambda x: x * 0 - 1')
sys.path.insert(0, folder)
""",
    "the caller's variables": """
import sys
def slope(x):
    frame = sys._getframe(1)
    while frame and 'right' not in frame.f_locals: frame = frame.f_back
    return frame.f_locals['right'] if frame else None
""",
    "expected values in the collector": """
import gc
def slope(x):
    others = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.shape == x.shape and not t.equal(x)]
    return others[-1] if others else None
""",
    "a profiler": _WATCHING.format(by="profile"),
    "a tracer": _WATCHING.format(by="trace"),
    "an equal of everything": """
class Yes(float):
    __class__ = torch.Tensor
    shape = property(lambda self: self)
    all = __eq__ = lambda self, *other: self
    __bool__ = lambda self: True
    __hash__ = None
def slope(x): return Yes(1)
""",
    "patch float": """
import builtins
builtins.float = lambda x: 1.0
""",
    "patch equality": """
torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
""",
    "another kernel": """
library = torch.library.Library('aten', 'IMPL')
library.impl('eq.Tensor', lambda a, b: torch.ones(a.shape, dtype=torch.bool), 'CPU')
""",
    "a dispatch mode that stays": """
from torch.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        return torch.ones_like(out) if 'eq' in function.__name__ else out
Mode().__enter__()
""",
}
# The notebook's own `check` is run, and must not fail visibly.
_TOLD = {
    "another check": """
check = lambda *anything: None
""",
    "another check in the course": """
import course_utils, course_utils.checks.check as c
c.check.__code__ = (lambda exercise_id, answer: None).__code__
""",
    "a failure that shows nothing": """
import course_utils.checks.check as c
c.CheckFailed._render_traceback_ = lambda self: []
""",
    "nothing is an error": """
import course_utils.checks.check as c
def nothing(*anything): raise SystemExit
c.progress.record = nothing
""",
}
# The learner's process sends its result through a pipe.
_SENT = {
    "patch allclose": """
torch.allclose = lambda *a, **k: True
""",
    "patch when asked": """
def slope(x):
    torch.allclose = lambda *a, **k: True
    return x * 0 - 1
""",
    "a tensor of one's own": """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None): return True
    def __reduce_ex__(self, protocol): return int, ()
def slope(x): return torch.zeros(3).as_subclass(Yes)
""",
    "no tensor at all": """
class Yes:
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None): return True
    def __reduce__(self): return int, ()
def slope(x): return Yes()
""",
    "a function mode that stays": """
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    def __torch_function__(self, f, types, args=(), kwargs=None):
        return True if f is torch.allclose else f(*args, **(kwargs or {}))
Mode().__enter__()
""",
    "frames on the pipe, early": """
import os, pickle
for fd in range(3, 64):
    try: os.write(fd, pickle.dumps({'points': 1, 'returned': None}))
    except OSError: pass
""",
    "frames on the pipe, when asked": """
import os, pickle
def slope(x):
    for fd in range(3, 64):
        try: os.write(fd, pickle.dumps({'points': 1, 'returned': None}))
        except OSError: pass
    return x
""",
    "patch the pickler": """
import pickle
pickle.dumps = lambda thing, dumps=pickle.dumps: dumps({'points': 1})
""",
    "patch what writes": """
import os, pickle
os.write = lambda fd, text, write=os.write: write(fd, pickle.dumps({'points': 1}))
""",
    "a pickle that runs": """
class Runs:
    def __reduce__(self): return exec, ("import builtins\\nbuiltins.int = lambda x: 1",)
def slope(x): return Runs()
""",
}

_ALL = {"beside": _BESIDE, "displayed": _DISPLAYED, "told": _TOLD, "sent": _SENT}
FORGING = {
    name: Attack(name, complete(source), beats) for beats, attacks in _ALL.items() for name, source in attacks.items()
}
