"""No test of questions writes into the user's cache."""

import pytest

from course_utils.ask import kept


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(kept, "user_cache_path", lambda name: folder / name)
    return folder / "autograd-course"
