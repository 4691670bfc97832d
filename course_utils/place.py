"""Where the notebooks are: beside the package in a clone, in the environment's data where a wheel was installed."""

from __future__ import annotations

import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).parent  # the folder course_utils itself
_CLONE = PACKAGE.parent
_INSTALLED = Path(sysconfig.get_path("data")) / "share" / "autograd-course"

# The folder that holds notebooks/ and exercises/; in a clone solutions/, too. A wheel carries no solutions.
ROOT = _CLONE if (_CLONE / "notebooks").is_dir() or not _INSTALLED.is_dir() else _INSTALLED

# A clone keeps the learner's copy; beside an installed package nobody would look for it.
HOME = _CLONE if ROOT == _CLONE else Path.cwd()
