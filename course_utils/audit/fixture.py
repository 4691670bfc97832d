"""The pytest fixture `audited`: a test that trains fails where its training has a mistake.

Loading this imports neither PyTorch nor the rest of the course: a suite that never asks for the fixture pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def audited() -> Iterator[Any]:
    """Watch the test. Where anything of level error was found, the test fails when it ends, with the report.

    The fixture's value is the report, filled when the test has ended. Set its `strict` to True in the test to fail
    on likely mistakes as well.
    """
    from course_utils.audit.watch import audit

    with audit() as report:
        yield report
    if report.failing():
        pytest.fail(str(report), pytrace=False)
