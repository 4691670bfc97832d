"""A check leaves the session as it was."""

import random
import sys
import warnings

import numpy as np
import pytest
import torch

from course_utils.checks.guard import guarded


def test_generators_are_put_back():
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    expected = torch.rand(1).item(), random.random(), np.random.rand()
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    with guarded(5):
        torch.rand(3), random.random(), np.random.rand()
    assert (torch.rand(1).item(), random.random(), np.random.rand()) == expected


def test_the_body_is_seeded():
    with guarded(5):
        first = torch.rand(1).item(), random.random()
    with guarded(5):
        second = torch.rand(1).item(), random.random()
    assert first == second


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_are_on_inside_and_as_before_after(mode):
    with mode():
        with guarded(5):
            assert torch.is_grad_enabled()
            assert not torch.is_inference_mode_enabled()
            torch.set_grad_enabled(False)
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_dtype_and_anomaly_mode_are_put_back():
    torch.set_default_dtype(torch.float64)
    try:
        with guarded(5):
            assert torch.get_default_dtype() == torch.float32
            torch.set_default_dtype(torch.float16)
            torch.autograd.set_detect_anomaly(True)
        assert torch.get_default_dtype() == torch.float64
        assert not torch.is_anomaly_enabled()
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_default_device_is_put_back():
    torch.set_default_device("meta")
    try:
        with guarded(5):
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).device.type == "meta"
    finally:
        torch.set_default_device(None)


def test_everything_is_put_back_after_an_exception():
    def fail():
        with guarded(5):
            torch.set_grad_enabled(False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.is_grad_enabled()


def test_warnings_and_stderr_are_caught(capsys):
    with guarded(5) as caught:
        warnings.warn("careful", UserWarning, stacklevel=1)
        warnings.warn("careful", UserWarning, stacklevel=1)
        print("to stderr", file=sys.stderr)
    assert caught == ["UserWarning: careful"]
    out = capsys.readouterr()
    assert out.err == ""
    assert out.out == "to stderr\n"


def test_what_a_library_warns_of_while_it_is_imported_is_not_told(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "warning_library.py").write_text("import warnings\nwarnings.warn('old', DeprecationWarning)\n")
    (tmp_path / "warning_module.py").write_text("import warnings\nwarnings.warn('mine', UserWarning)\n")
    for path in (folder, tmp_path):
        monkeypatch.syspath_prepend(path)
    with guarded(5) as caught:
        import warning_library  # noqa: F401
        import warning_module  # noqa: F401
    assert caught == ["UserWarning: mine"]
    for name in ("warning_library", "warning_module"):
        del sys.modules[name]


def test_autocast_does_not_reach_the_body():
    with torch.autocast("cpu", dtype=torch.bfloat16), guarded(5):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_a_profiler_goes_on():
    import cProfile

    with cProfile.Profile() as profile:
        before = sys.getprofile()
        with guarded(0):
            pass
        assert sys.getprofile() is before
    assert profile.getstats()
