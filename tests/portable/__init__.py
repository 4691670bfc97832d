"""Whether lessons, masters and verdicts are the same on other processors: `make portable`.

A processor's vector units decide in which order PyTorch adds and which digits are lost. The libraries below PyTorch
can be told to use less than this machine has, so that one machine stands for several. The last setting stands for
those that nobody here has: results of the usual operations are wrong in their last place (`rounding/`).
"""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]

_ROUNDING = os.pathsep.join(filter(None, [str(Path(__file__).parent / "rounding"), os.environ.get("PYTHONPATH")]))

# Environments, by name. What they say is read when PyTorch starts.
SETTINGS: dict[str, dict[str, str]] = {
    "as is": {},
    "one thread": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    "no vectors": {"ATEN_CPU_CAPABILITY": "default"},
    "old vectors": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "other rounding": {"PYTHONPATH": _ROUNDING},
}
