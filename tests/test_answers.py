"""The answers in tests/answers can be run as a notebook's cell."""

import dis
from collections.abc import Iterator
from types import CodeType

import pytest

from course_utils.checks.registry import exercises
from tests.answers import source_of


@pytest.mark.parametrize("name", exercises())
def test_no_answer_calls_another_by_the_name_that_a_cell_binds_to_the_answer(name: str) -> None:
    answer = exercises()[name].name
    calling = list(_calling(compile(source_of(name), name, "exec"), answer))
    assert not calling, f"in a cell that binds {answer} to them they call themselves: give the right one a second name"


def _calling(code: CodeType, name: str) -> Iterator[str]:
    """Yield the functions within code, but for the one of that name, that look the name up where a cell binds it."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name != name:
            if any(it.opname == "LOAD_GLOBAL" and it.argval == name for it in dis.get_instructions(inner)):
                yield inner.co_qualname
            yield from _calling(inner, name)
