"""Auditing: a training, watched for mistakes that raise no error.

The package has the name of its one function, so it can be called in the function's place: see
`course_utils.audit.watch.audit`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that is called as its function."""

    def __call__(self, *subjects: Any, **options: Any) -> Any:
        from course_utils.audit.watch import audit as watching

        return watching(*subjects, **options)


audit = sys.modules[__name__]
audit.__class__ = _Callable
