"""What imports what, what the package offers, and that the environments agree."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import course_utils

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "course_utils"
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))}

# Each part may import itself and what stands here. What is not listed is forbidden.
ALLOWED = {
    "course_utils.graph": (),
    "course_utils.pictures": ("course_utils.graph",),
    "course_utils.checks.data": (),
    "course_utils.checks.observing": ("course_utils.checks.data", "course_utils.graph"),
    "course_utils.checks": ("course_utils.graph",),
    "course_utils.grading": ("course_utils.checks", "course_utils.graph"),
    "course_utils.explain": ("course_utils.graph",),
    "course_utils.audit": ("course_utils.explain", "course_utils.graph"),
    "course_utils.notebooks": ("course_utils.checks",),
    "course_utils.cli": ("course_utils.notebooks", "course_utils.grading", "course_utils.audit"),
    "course_utils.__main__": ("course_utils.cli",),
    "course_utils.__init__": ("course_utils",),
}


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("course_utils")}


def within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module):
    part = max((name for name in ALLOWED if within(module, name)), key=len, default=None)
    assert part, f"{module} belongs to no part: say in this test what it may import"
    for name in imports_of(MODULES[module]):
        allowed = (part, *ALLOWED[part])
        assert any(within(name, other) for other in allowed), f"{module} imports {name}"


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a new process has loaded after running `code`."""
    return loaded_in_turn(code)[-1]


def loaded_in_turn(code: str) -> list[set[str]]:
    """Return what was loaded wherever `code` printed `*sys.modules`, and at its end."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, torch\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [{name.partition(".")[0] for name in line.split()} for line in done.stdout.splitlines() if " torch " in line]


HEAVY = {
    "matplotlib",
    "ipywidgets",
    "torchviz",
    "pygraphviz",
    "nbclient",
    "nbformat",
    "nbgrader",
    "dask",
    "rich",
    "click",
}


def test_importing_the_course_loads_nothing_heavy():
    assert not loaded_by("import course_utils") & HEAVY


def test_checking_and_tracing_load_nothing_heavy():
    code = "from course_utils import check, trace, saved\ncheck('first_gradient', 8); trace(torch.ones(1)); saved()"
    assert not loaded_by(code) & HEAVY


def test_measuring_memory_loads_nothing_heavy():
    code = "from course_utils import memory, plot\nfound = memory(lambda: torch.ones(1))\nfound.merged(1)\n"
    code += "print(*sys.modules)\nplot(found)"
    before, after = loaded_in_turn(code)
    assert not before & HEAVY
    assert "matplotlib" in after


def test_the_sandbox_half_loads_no_judge():
    code = "import pkgutil, importlib, course_utils.checks.observing as o, course_utils.checks.data\n"
    code += "[importlib.import_module(f'{o.__name__}.{m.name}') for m in pkgutil.iter_modules(o.__path__)]\n"
    code += "assert not [n for n in sys.modules if n.startswith('course_utils.checks.lessons')]"
    loaded_by(code)


def test_public_names():
    assert set(course_utils.__all__) >= {"check", "hint", "solution", "progress", "trace", "draw", "saved"}
    assert dir(course_utils) == sorted(course_utils.__all__)
    for name in course_utils.__all__:
        assert getattr(course_utils, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match="course_utils has no 'nothing'; it has CheckFailed, audit"):
        course_utils.nothing  # noqa: B018


def test_public_functions_have_full_docstrings_and_hints():
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if module.split(".")[-1] != "__main__":
            assert ast.get_docstring(tree), f"{module} has no docstring"


def pins(lines: list[str]) -> dict[str, str]:
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9._]+)", line.strip()) for line in lines]
    return {match[1].lower().replace("_", "-"): match[2] for match in found if match}


def test_constraints_are_exact_pins():
    lines = (ROOT / "constraints.txt").read_text().split()
    assert len(pins(lines)) == len(lines)
    assert pins(lines)["torch"] == "2.13.0", "a +cpu build cannot be had everywhere"


def test_conda_users_get_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (by_pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    constraints = pins((ROOT / "constraints.txt").read_text().split())
    assert pins(by_pip) == constraints
    assert [line for line in by_pip if "==" not in line] == ["-e .[test]"]


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    constraints = pins((ROOT / "constraints.txt").read_text().split())
    listed = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    for requirement in listed:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower().replace("_", "-")
        assert name in constraints or name == "autograd-course", f"{name} has no pin in constraints.txt"


def test_installed_versions_are_the_pins():
    from importlib.metadata import version

    constraints = pins((ROOT / "constraints.txt").read_text().split())
    wrong = {name: version(name) for name, pin in constraints.items() if version(name).partition("+")[0] != pin}
    assert not wrong, "run `make setup`"
