"""Numbers that leave PyTorch all at once."""

import numpy as np
import torch

from course_utils.checks.observers import exits


def test_every_exit_is_seen_and_put_back() -> None:
    tensor, seen = torch.ones(2), []
    before = dict(vars(torch.Tensor))
    with exits.noticed(lambda left: seen.append(left is tensor)):
        assert tensor.tolist() == [1.0, 1.0]
        assert np.asarray(tensor).sum() == 2
        np.from_dlpack(tensor)
    assert all(seen)
    assert len(seen) >= 3
    assert dict(vars(torch.Tensor)) == before
    tensor.numpy()
    assert len(seen) <= 5
