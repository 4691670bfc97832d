"""Settings for the whole suite, notebooks included."""

import gc
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import selection

BROWSER = "tests/browser/"

_SAMPLE = pytest.StashKey[str]()
_SCRATCH = Path(tempfile.mkdtemp(prefix="course-tests-"))

# No test writes into the developer's own progress.
os.environ["COURSE_PROGRESS"] = str(_SCRATCH / "progress.sqlite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run take less than everything."""
    group = parser.getgroup("course")
    group.addoption("--sample", action="store_true", help="of what is large, only what the commit draws")
    group.addoption("--changed", action="store_true", help="only the tests of files that changed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run does not take."""
    tests = [item.nodeid for item in items]
    if config.option.changed:
        chosen = {test for test in tests if selection.concerns(test, selection.recent())}
    elif config.option.sample:
        chosen = selection.sampled(tests)
        config.stash[_SAMPLE] = selection.said(selection.large(tests), selection.large(chosen))
    else:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


def pytest_collection_finish() -> None:
    """Keep what the collected tests hold, some 600,000 objects, out of every garbage collection that follows.

    One that goes through them takes 0.4 s, as long as the limit of an answer that it happens to interrupt.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what a worker sampled to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None and _SAMPLE in session.config.stash:
        output["sample"] = session.config.stash[_SAMPLE]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take what a worker sampled."""
    if "sample" in getattr(node, "workeroutput", {}):
        node.config.stash[_SAMPLE] = node.workeroutput["sample"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each notebook start without progress, as `course build` does."""
    if item.path.suffix == ".ipynb":
        os.environ["COURSE_PROGRESS"] = str(_SCRATCH / f"{item.path.parent.name}-{item.path.stem}.sqlite")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Extend --dist loadfile, a file at a time for each worker: all tests in the browser count as one file.

    So they share one JupyterLab and one browser. The order is that of the collection: the browser's tests, the longest,
    begin, and the notebooks end, each of them short. Left to itself xdist begins with the files of most tests, and one
    worker waits at the end for the other's few slow ones.
    """
    if config.option.dist != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return BROWSER if nodeid.startswith(BROWSER) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was sampled, and the mutation score of the checks."""
    if _SAMPLE in config.stash:
        terminalreporter.write_line(config.stash[_SAMPLE])
    numbers: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                numbers.update({name: it for name, it in report.user_properties if isinstance(it, int)})
    for mutants, survivors, what in (
        ("mutants", "survivors", "wrong answers"),
        ("rule-made mutants", "rule-made survivors", "mutants made by rule"),
    ):
        if tried := numbers[mutants]:
            caught = tried - numbers[survivors]
            terminalreporter.write_line(
                f"mutation score of the checks: {100 * caught / tried:.1f} % ({caught} of {tried} {what} caught)"
            )
