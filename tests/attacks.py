"""Cells that attack a grader. Each defines a wrong `slope`, and tries to be given its point, or to do harm.

`FORGING` ones try to have a wrong answer scored; `HARM` ones to reach what is not theirs: those leave what they got in
`loot`. `ENDING` ones end or exhaust the process, with the statuses that are right for them.
"""

WRONG = "def slope(x):\n    return x * 0 - 1\n"
RIGHT = "first_gradient = 8\ndef slope(x):\n    return 3 * x.detach() ** 2\n"

# Those in NAIVE succeed where the cells run in the process that judges: a test shows it.
NAIVE = {
    "patch the judge": "import course_utils.checks.examine as e\nfrom course_utils.checks.exercise import Verdict\n"
    "e.judge = lambda exercise, *rest: Verdict(exercise.id, 'correct', exercise.points)\n",
    "patch all": "import builtins\nbuiltins.all = lambda *anything: True\n",
    "patch a lesson": "import course_utils.checks.lessons.lesson_00 as l\n"
    "from course_utils.checks.exercise import Finding\n"
    "l.right_value = lambda *rest: Finding('value', True)\nl.close = lambda *rest: True\n",
    "patch what close calls": "import course_utils.checks.compare as c\nc.close = lambda *rest: True\n"
    "import course_utils.checks.lessons.lesson_00 as l\nl.close = c.close\n"
    "l.right_value.__code__ = (lambda *rest: l.Finding('value', True)).__code__\n"
    "l.right_value.__globals__['l'] = l\n",
    "change the exercise": "import gc\nfrom course_utils.checks.exercise import Exercise\n"
    "import course_utils.checks.registry as r\nr.exercises()\n"
    "for thing in gc.get_objects():\n    if type(thing) is Exercise:\n"
    "        object.__setattr__(thing, 'judge', lambda case, seen: [])\n",
    "patch autograd.grad": "import torch\ntorch.autograd.grad = lambda y, x, *rest: (x.detach() * 0 - 1,)\n",
    "the oracle as the answer": "import sys\n"
    "def slope(x):\n    frame = sys._getframe()\n    while 'exercise' not in frame.f_locals:\n"
    "        frame = frame.f_back\n"
    "    object.__setattr__(frame.f_locals['exercise'], 'judge', lambda case, seen: [])\n    return None\n",
}
OTHERS = {
    "patch observe": "import course_utils.checks.examine as e\ne.observe = lambda *rest: ({'returned': 0}, [])\n",
    "patch encode": "import course_utils.checks.data as d\nd.encode = lambda value: b'\\xc0'\n",
    "patch the observer": "import sys\nfor n, m in list(sys.modules.items()):\n"
    "    if 'observing.lesson_00' in n:\n        m.slope = lambda answer, case: {'returned': None}\n",
    "a tensor of one's own": "import torch\nclass Yes(torch.Tensor):\n    @classmethod\n"
    "    def __torch_function__(cls, f, types, args=(), kwargs=None):\n        return True\n"
    "def slope(x):\n    return torch.zeros(3).as_subclass(Yes)\n",
    "an equal of everything": "class Yes(float):\n    def __eq__(self, other): return True\n"
    "    __hash__ = None\ndef slope(x):\n    return Yes(1)\n",
    "a function mode that stays": "import torch\nfrom torch.overrides import TorchFunctionMode\n"
    "class M(TorchFunctionMode):\n"
    "    def __torch_function__(self, f, types, args=(), kwargs=None):\n        return torch.zeros(1)\n"
    "M().__enter__()\n",
    "input transformers": "get_ipython().input_transformers_post.append(lambda lines: ['slope = 1\\n'])\n",
    "the display hook": "import sys\nsys.displayhook = lambda value: None\n"
    "get_ipython().display_formatter.format = lambda *a, **k: ({}, {})\n",
    "events of the shell": "get_ipython().events.register('post_run_cell', lambda *a: 1 / 0)\n",
    "patch isinstance": "import builtins\nbuiltins.isinstance = lambda *a: True\n",
    "patch while observed": "import torch\ndef slope(x):\n    torch.Tensor.detach = lambda self: self\n    return x\n",
    "a new name in the course": "import course_utils.checks.data as d\nd.len = lambda x: 0\nd.type = lambda x: int\n",
    "shadow a method": "import torch\ntorch.Tensor.pow = torch.Tensor.__pow__ = lambda self, n: self\n"
    "torch.Tensor.clone = lambda self: self\n",
    "frames on the socket, early": "import os\nfor fd in range(3, 64):\n"
    "    try: os.write(fd, b'\\0\\0\\0\\x05\\x90' + b'x' * 40)\n"
    "    except OSError: pass\n",
    "frames on the socket, when asked": "import os\ndef slope(x):\n    for fd in range(3, 64):\n"
    "        try: os.write(fd, b'\\xff\\xff\\xff\\xff')\n        except OSError: pass\n    return x\n",
    "forge in the right form": "import os, sys, msgspec\ndef slope(x):\n"
    "    frame = sys._getframe()\n    while 'request' not in frame.f_locals:\n        frame = frame.f_back\n"
    "    send, line, request = (frame.f_locals[n] for n in ('send', 'line', 'request'))\n"
    "    from course_utils.grading import wire\n"
    "    send(line, wire.Seen(request.token, msgspec.msgpack.encode({'returned': True, 'x': True})))\n    return 1\n",
    "deep nesting": "import sys\ndef slope(x):\n    frame = sys._getframe()\n"
    "    while 'request' not in frame.f_locals:\n        frame = frame.f_back\n"
    "    send, line, request = (frame.f_locals[n] for n in ('send', 'line', 'request'))\n"
    "    from course_utils.grading import wire\n"
    "    send(line, wire.Seen(request.token, b'\\x91' * 100000 + b'\\xc0'))\n",
    "raises in __str__": "class E(Exception):\n    def __str__(self): raise SystemExit\ndef slope(x): raise E\n",
    "raises KeyboardInterrupt": "def slope(x): raise KeyboardInterrupt\n",
    "returns a huge tensor": "import torch\ndef slope(x): return torch.zeros(3_900_000)\n",
    "closes the streams": "import sys, os\nsys.stdout.close()\nsys.stderr = None\ndel sys.stdin\n",
    "clears its namespace": "get_ipython().user_ns.clear()\n",
    "deletes modules": "import sys\nfor n in list(sys.modules):\n"
    "    if n.startswith('course_utils'): del sys.modules[n]\n",
    "prints without end, a while": "for i in range(200_000): print('x' * 1000)\n",
    "recursion": "def f(): return f()\nf()\n",
    "recursion in C": "x = []\nfor i in range(200_000): x = [x]\nrepr(x)\n",
    "a syntax error": "def\n",
    "an exit handler": "import atexit, time\natexit.register(time.sleep, 100)\n",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()\n",
    "a loop": "while True: pass\n",
}

# Each leaves in `loot` what it got; where it got nothing, `loot` is not defined.
HARM = {
    "the password file": "loot = open('/etc/passwd').read()\n",
    "the solutions": "import glob\nloot = open(glob.glob({root!r} + '/solutions/00*')[0]).read()\n",
    "the judges, as a file": "loot = open({root!r} + '/course_utils/checks/lessons/lesson_00.py').read()\n",
    "the judges, as a module": "import course_utils.checks.lessons.lesson_00 as loot\n",
    "the exercises": "from course_utils.checks.registry import exercises\nloot = exercises()\n",
    "exercises in memory": "import gc\nfrom course_utils.checks.exercise import Exercise\n"
    "loot = [t for t in gc.get_objects() if type(t) is Exercise]\nif not loot: del loot\n",
    "write into the course": "loot = open({root!r} + '/course_utils/evil.py', 'w')\n",
    "write beside it": "loot = open({scratch!r} + '/evil', 'w')\n",
    "read a neighbour": "loot = open({scratch!r} + '/grades.sqlite').read()\n",
    "a socket": "import socket\nloot = socket.socket()\n",
    "a local socket": "import socket\nloot = socket.socket(socket.AF_UNIX)\n",
    "a program": "import subprocess\nloot = subprocess.run(['/bin/true'], check=True)\n",
    "a fork": "import os\np = os.fork()\nif p == 0: os._exit(0)\nloot = p\n",
    "the parent's memory": "import os\nloot = open(f'/proc/{{os.getppid()}}/mem', 'rb')\n",
    "other processes": "import os\nloot = [p for p in os.listdir('/proc') if p.isdigit()]\n",
    "ptrace": "import ctypes, os\nif ctypes.CDLL(None).ptrace(16, os.getppid() or 1, 0, 0) == 0: loot = 1\n",
    "signals": "import os\nos.kill(os.getppid() or -1, 0)\nloot = 1\n",
    "more memory": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**62, 2**62))\nloot = 1\n",
    "root again": "import os\nos.setuid(0)\nloot = 1\n",
    "a user namespace": "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000) == 0: loot = 1\n",
    "a mount": "import ctypes\nif ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0: loot = 1\n",
    "memory files": "import os\nloot = os.memfd_create('x')\n",
    "the environment": "import os\nloot = os.environ['COURSE_PROGRESS']\n",
    "a name for the host": "import socket\nsocket.sethostname('x')\nloot = 1\n",
}

# Those that get their loot where there is no sandbox, for an ordinary user too.
REACHED = {
    *("the password file", "the solutions", "the judges, as a file", "the judges, as a module", "the exercises"),
    *("write beside it", "read a neighbour", "a socket", "a local socket", "a program", "a fork"),
    *("other processes", "signals", "memory files"),
}

ENDING = {
    "os._exit": ("import os\nos._exit(0)\n", {"crashed"}),
    "abort": ("import os\nos.abort()\n", {"crashed"}),
    "a segmentation fault": ("import ctypes\nctypes.string_at(0)\n", {"crashed"}),
    "hang up": ("import os\nos.closerange(3, 64)\n", {"crashed"}),
    "a loop that swallows": (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\nwhile True: pass\n",
        {"timeout"},
    ),
    "memory, slowly": ("x = []\nwhile True: x.append(bytearray(10_000_000))\n", {"memory"}),
    "memory, touched": (
        "import time\nx = []\nwhile True:\n    x.append(b'x' * 4_000_000)\n    time.sleep(0.005)\n",
        {"memory"},
    ),
    "memory, at once": ("import torch\nx = torch.ones(10**11)\n", {"memory"}),
    "threads": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()\n",
        {"graded", "memory", "timeout", "crashed"},
    ),
    "a fork bomb": ("import os\nwhile True: os.fork()\n", {"graded"}),
    "the disk": (
        "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(10_000_000))\n",
        {"graded", "crashed"},
    ),
}
