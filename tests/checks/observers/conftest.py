"""What observers tell in the second way of observing."""

from collections import Counter

import pytest

from course_utils.checks.observers import telling


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each thing was told, in the second way."""
    monkeypatch.setattr(telling, "_states", [telling._State()])
    telling.observe_otherwise()
    found: Counter[str] = Counter()
    telling.listen(lambda what: found.update([what]))
    return found
