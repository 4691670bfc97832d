"""What PyTorch itself switches in a process is put back for these tests."""

from collections.abc import Iterator

import pytest
from torch.distributions import Distribution


@pytest.fixture(autouse=True)
def distributions_ask() -> Iterator[None]:
    """Let distributions check their arguments, as they do until something is compiled: then Dynamo ends that.

    Source: `TorchPatcher.patch` in torch/_dynamo/eval_frame.py.
    """
    before = Distribution._validate_args
    Distribution.set_default_validate_args(True)
    yield
    Distribution.set_default_validate_args(before)
