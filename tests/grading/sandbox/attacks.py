"""Cells that attack this grader, reach for what is not theirs, or end their process. forging.py holds more.

`AIMED` ones take over the child that runs them, and forge; `TROUBLE` must not disturb. Both define a wrong `slope`.
`HARM` tries to reach what is not its own, and leaves what it got in `loot`. `ENDING` ones end or exhaust their process,
with the statuses that are right for them.
"""

from tests.grading.sandbox.forging import complete

# What the child's own loop holds: its socket, the request with its token, what it sends with, and what restores.
SERVED = """
import sys
from course_utils.grading import wire
def served():
    frame = sys._getframe()
    while 'original' not in frame.f_locals:
        frame = frame.f_back
    return dict(frame.f_locals)
def take_over(seen):
    at = served()
    request = at['request']
    while True:
        at['send'](at['line'], wire.Seen(request.token, seen(request)))
        request = at['receive'](at['line'], wire.Request)
"""
_AIMED = {
    "forge in the right form": """
import msgspec
def slope(x):
    at = served()
    at['send'](at['line'], wire.Seen(at['request'].token, msgspec.msgpack.encode({'returned': True, 'x': True})))
    return 1
""",
    "forge in advance": """
at = served()
for message in (wire.Ran(at['request'].token), wire.Tried(at['request'].token, True)):
    at['send'](at['line'], message)
""",
    "forge with an old token": """
at = served()
token = at['request'].token
def slope(x):
    at['send'](at['line'], wire.Seen(token, b'\\x80'))
""",
    "frames that are none": """
import os
for fd in range(3, 64):
    try: os.write(fd, b'\\0\\0\\0\\x05\\x90' + b'x' * 40)
    except OSError: pass
""",
    "frames without end": """
import os
def slope(x):
    for fd in range(3, 64):
        try: os.write(fd, b'\\xff\\xff\\xff\\xff')
        except OSError: pass
    return x
""",
    "deep nesting": """
def slope(x): take_over(lambda request: b'\\x91' * 100000 + b'\\xc0')
""",
    "an array that lies": """
from course_utils.checks import data
lie = {'returned': data.Array((2**40, 2**40), 'float32', b''), 'x': None, 'grad': None}
def slope(x): take_over(lambda request: data.encode(lie))
""",
    "an array of another size": """
from course_utils.checks import data
def slope(x):
    take_over(lambda request: data.encode({'returned': data.Array(x.shape, 'float32', b''), 'x': None, 'grad': None}))
""",
    "a shape without end": """
from course_utils.checks import data
lie = {'returned': data.Array((1,) * 600_000, 'float32', b''), 'x': None, 'grad': None}
def slope(x): take_over(lambda request: data.encode(lie))
""",
    "a mountain of nothing": """
mountain = b'\\x81\\xa8returned\\xdd\\x00\\x28\\x00\\x00' + b'\\x80' * 0x280000
def slope(x): take_over(lambda request: mountain)
""",
    "descriptors, sent along": """
import os, socket
for fd in range(3, 60):
    try:
        line = socket.socket(fileno=os.dup(fd))
        for n in range(200): socket.send_fds(line, [b'x'], [0] * 200)
    except OSError: pass
""",
    "events that are no text": """
import os
def slope(x):
    for fd in range(3, 60):
        try:
            for n in range(20_000): os.write(fd, b'\\xff\\x00' * 20 + b'\\n')
        except OSError: pass
""",
    "a long excuse": """
class Long:
    def __call__(self, x): return x
    @property
    def __signature__(self):
        at = served()
        at['send'](at['line'], wire.Tried(at['request'].token, True, 'x' * 3_900_000))
        at['receive'](at['line'], wire.Request)
slope = Long()
""",
    "leave as who cannot enter": "import os\nos._exit(77)\n",
    "empty what restores": """
original = served()['original']
original._holders, original._identities, original._functions, original._parts = [], [], [], []
torch.Tensor.detach = lambda self: self
import course_utils.checks.data as d
d.Array.of = lambda tensor: None
""",
}
AIMED = {name: complete(SERVED + source) for name, source in _AIMED.items()}

_TROUBLE = {
    "patch encode": "import course_utils.checks.data as d\nd.encode = lambda value: b'\\xc0'\n",
    "patch isinstance": "import builtins\nbuiltins.isinstance = lambda *a: True\n",
    "raises in __str__": "class E(Exception):\n    def __str__(self): raise SystemExit\ndef slope(x): raise E\n",
    "raises KeyboardInterrupt": "def slope(x): raise KeyboardInterrupt\n",
    "returns a huge tensor": "import torch\ndef slope(x): return torch.zeros(3_900_000)\n",
    "deletes the streams": "import sys\nsys.stdout.close()\nsys.stderr = None\ndel sys.stdin\n",
    "clears its namespace": "get_ipython().user_ns.clear()\n",
    "deletes modules": "import sys\nfor n in [n for n in sys.modules if n.startswith('course')]: del sys.modules[n]\n",
    "fails after each cell": "get_ipython().events.register('post_run_cell', lambda *a: 1 / 0)\n",
    "prints without end, a while": "for i in range(20_000): print('x' * 1000)\n",
    "recursion": "def f(): return f()\nf()\n",
    "recursion in C": "x = []\nfor i in range(200_000): x = [x]\nrepr(x)\n",
    "a syntax error": "def\n",
    "an exit handler": "import atexit, time\natexit.register(time.sleep, 100)\n",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()\n",
    "a loop": "while True: pass\n",
    "stops itself and all it can": "import os, signal\nfor p in (os.getpid(), -1, 0, 1, os.getppid()):\n"
    "    for s in (signal.SIGSTOP, signal.SIGTSTP):\n        try: os.kill(p, s)\n        except OSError: pass\n",
    "limits of its own": "import resource as r\n"
    "for what in (r.RLIMIT_CPU, r.RLIMIT_NOFILE, r.RLIMIT_FSIZE, r.RLIMIT_CORE):\n"
    "    try: r.setrlimit(what, (1, 1))\n    except (OSError, ValueError): pass\n",
    "a priority of its own": "import os\nfor ask in (lambda: os.nice(-20), lambda: os.sched_setscheduler(0, 1, "
    "os.sched_param(50)), lambda: os.sched_setaffinity(0, {0})):\n    try: ask()\n    except OSError: pass\n",
    "no file more": "import os\ntry:\n    for n in range(10**6): os.mkdir(f'/tmp/{n}')\nexcept OSError: pass\n",
    "alarms of its own": "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, lambda *a: None)\n"
    "    except (OSError, ValueError): pass\n"
    "for w in (0, 1, 2): signal.setitimer(w, 0.0001, 0.0001)\n",
    "another clock": "import time\ntime.monotonic = time.time = time.perf_counter = lambda: float('nan')\n",
    "another place": "import decimal, locale, os, time\n"
    "os.environ |= {'TZ': 'Nowhere+25:61', 'LC_ALL': 'tr_TR.UTF-8'}\n"
    "time.tzset()\ntry: locale.setlocale(locale.LC_ALL, '')\nexcept locale.Error: pass\n"
    "decimal.getcontext().prec = 1\n",
    "an error with a long name": "raise type('\\x1b[2J\\u202e' + 'E' * 10**6, (Exception,), {})('x' * 10**7)\n",
    "halves of surrogates": "def slope(x): raise ValueError('\\udcff\\ud800' * 10)\n",
    "a view of what is not there": "def slope(x): return x.detach().sum().expand(2**50)\n",
    "a sparse tensor": "import torch\ndef slope(x): return torch.sparse_coo_tensor([[0]], [1.0], (2**60,))\n",
    "a number of a million digits": "def slope(x): return 1 << 10_000_000\n",
    "a source of one operator": "x = " + "-" * 90_000 + "1\n",
    "a source of one sum": "x = " + "+".join("1" * 20_000) + "\n",
    "a constant that is folded": "x = ((1,) * 20,) * 250, ('a' * 2**12 * 2**12 * 2**12)\n",
    "fills the standard streams": "import os\nfor n in range(3):\n    os.set_blocking(n, False)\n"
    "    try:\n        for _ in range(99): os.write(n, bytes(65536))\n    except OSError: pass\n"
    "    os.set_blocking(n, True)\n",
    "urgent bytes": "import os, socket\nfor n in range(3, 60):\n"
    "    try: socket.socket(fileno=os.dup(n)).send(b'!', socket.MSG_OOB)\n    except OSError: pass\n",
}
TROUBLE = {name: complete(source) for name, source in _TROUBLE.items()}

# Each leaves in `loot` what it got; where it got nothing, `loot` is not defined.
HARM = {
    "the password file": "loot = open('/etc/passwd').read()\n",
    "the solutions": "import glob\nloot = open(glob.glob({root!r} + '/solutions/00*')[0]).read()\n",
    "the judges, as a file": "import glob\n"
    "loot = open(glob.glob({root!r} + '/course_utils/checks/judges/*/slope.py')[0]).read()\n",
    "the judges, as a module": "import course_utils.checks.judges.lesson_00_start_here.slope as loot\n",
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
    "a lock on a library": "import fcntl, os\n"
    "fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)\nloot = 1\n",
    "the environment": "import os\nloot = os.environ['COURSE_PROGRESS']\n",
    "a name for the host": "import socket\nsocket.sethostname('x')\nloot = 1\n",
}

# Those that get their loot where there is no sandbox, for an ordinary user too.
REACHED = {
    *("the password file", "the solutions", "the judges, as a file", "the judges, as a module", "the exercises"),
    *("write beside it", "read a neighbour", "a socket", "a local socket", "a program", "a fork"),
    *("other processes", "signals", "memory files", "a lock on a library"),
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
    "memory, shared": (
        "import mmap, time\nx = []\nfor _ in range(40):\n    x.append(mmap.mmap(-1, 10_000_000))\n"
        "    x[-1].write(b'x' * 10_000_000)\ntime.sleep(99)\n",
        {"memory"},
    ),
    "memory, behind a first thread that has left": (
        "import ctypes, os, threading, time\nx = []\ndef fill():\n    while True:\n        x.append(b'x' * 4_000_000)\n"
        "        time.sleep(0.005)\nthreading.Thread(target=fill, daemon=True).start()\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)\n",
        {"crashed"},
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
    "a limit that is taken away": (
        "import signal\nsignal.setitimer = lambda *a: (0.0, 0.0)\n"
        "signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass\n",
        {"timeout"},
    ),
    "recursion without a limit": (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(*a): return list(map(f, [1]))\nf()\n",
        {"crashed"},
    ),
}

# Those of ENDING that end, hang or fill a process that runs them naively: naive.py shows it. Not shown there are
# the fork bomb and the disk, which would harm this machine, and memory that takes its time or is refused at once.
DEADLY = (
    *("os._exit", "abort", "a segmentation fault", "hang up", "a loop that swallows", "memory, slowly", "threads"),
    *("a limit that is taken away", "recursion without a limit"),
)
