"""Settings that all code of a session shares."""

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from course_utils.checks.guard import guarded
from course_utils.checks.settings import LEFT, changed_since, left_changed, settings


def test_what_changed_is_named_with_what_it_was_and_is():
    with guarded(1):
        before = settings()
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        assert changed_since(before) == [
            ["the gradient mode", "on", "off"],
            ["the default dtype", "torch.float32", "torch.float64"],
        ]


def test_what_is_put_back_by_the_answer_is_not_named():
    with guarded(1):
        before = settings()
        with torch.no_grad(), torch.autograd.detect_anomaly(check_nan=False):
            register_module_forward_hook(lambda *run: None).remove()
        assert not changed_since(before)


def test_hooks_for_all_modules_and_deterministic_mode_do_not_outlive_the_guard():
    ran = []
    with guarded(1):
        register_module_forward_hook(lambda *run: ran.append(run))
        torch.use_deterministic_algorithms(True)
    nn.Identity()(torch.ones(1))
    assert not ran
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("entries", [None, 3, [3], [["one", "two"]]])
def test_forged_entries_raise_nothing(entries):
    assert all(not finding.ok for finding in left_changed({LEFT: entries}))
