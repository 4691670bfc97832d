"""What a returned mapping holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def is_dict(returned: object) -> bool:
    return isinstance(returned, Mapping)


def entries(returned: Any) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a mapping, as a dict's own methods give them; nothing for anything else."""
    if isinstance(returned, dict):
        return list(dict.items(returned))
    return list(returned.items()) if is_dict(returned) else []
