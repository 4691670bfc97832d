"""What a returned dict holds."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any


def is_dict(returned: object) -> bool:
    return type(returned) in (dict, defaultdict, OrderedDict)


def entries(returned: Any) -> Iterable[tuple[Any, Any]]:
    return list(dict.items(returned)) if is_dict(returned) else []
