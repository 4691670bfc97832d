"""What imports what, what the package offers, and that the environments agree."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

import course_utils
from course_utils import cli
from course_utils.checks.registry import LESSONS, exercises

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "course_utils"
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))}

TERMINAL = "course_utils.grading.terminal"
PLAIN = ("course_utils.grading.errors", "course_utils.grading.submission")
WIRE = "course_utils.grading.wire"
PROGRAM = (
    *PLAIN,
    *(f"course_utils.grading.{part}" for part in ("alone", "intake", "controller", "gradebook", "outgoing")),
    "course_utils.checks.registry",
)
# What runs an answer and observes it. Judges and cases stand in `course_utils.checks.judges`.
OBSERVING = tuple(
    f"course_utils.checks.{part}"
    for part in ("blame", "data", "examine", "exercise", "frames", "observers", "scenes", "timelimit")
)

# Each part may import itself and what stands here. What is not listed is forbidden.
ALLOWED = {
    "course_utils.inline": (),  # open to all
    "course_utils.place": (),  # open to all
    "course_utils.ask": (),
    "course_utils.graph": (),
    "course_utils.pictures": ("course_utils.graph",),
    "course_utils.explain": ("course_utils.ask", "course_utils.graph"),
    "course_utils.checks.data": ("course_utils.explain.crossing",),
    "course_utils.checks.scenes": ("course_utils.checks.data", "course_utils.graph"),
    "course_utils.checks.observers": (
        *("course_utils.checks.blame", "course_utils.checks.data", "course_utils.checks.frames"),
        *("course_utils.checks.scenes", "course_utils.graph"),
    ),
    "course_utils.audit": ("course_utils.ask", "course_utils.explain", "course_utils.graph"),
    "course_utils.checks": ("course_utils.graph", "course_utils.explain"),
    # The folders of grading are its levels of trust: SECURITY.md. What all of them share is plain data.
    "course_utils.grading.alone": PLAIN,
    "course_utils.grading.errors": (),
    "course_utils.grading.submission": (),
    "course_utils.grading.wire": (),
    "course_utils.grading.gradebook": PLAIN,
    "course_utils.grading.intake": (*PLAIN, "course_utils.checks.registry"),
    "course_utils.grading.controller": (*PLAIN, WIRE, "course_utils.checks"),
    "course_utils.grading.sandbox": (WIRE, *OBSERVING),
    "course_utils.grading.outgoing": (*PLAIN, "course_utils.grading.intake", "course_utils.checks"),
    # The programs, which call intake, controller, gradebook and outgoing in turn.
    TERMINAL: (*PLAIN, "course_utils.grading.intake.identity"),
    "course_utils.grading.grade": (*PROGRAM, TERMINAL),
    "course_utils.grading.commands": (*PROGRAM, TERMINAL),
    "course_utils.grading.gradescope": PROGRAM,
    "course_utils.grading.__init__": (),
    "course_utils.notebooks": ("course_utils.ask", "course_utils.checks"),
    "course_utils.copies": ("course_utils.notebooks",),
    "course_utils.doctor": (
        "course_utils.copies",
        "course_utils.checks.progress",
        "course_utils.grading.controller.machine",
    ),
    "course_utils.skeleton": ("course_utils.checks", "course_utils.notebooks"),
    "course_utils.cli": tuple(
        f"course_utils.{part}"
        for part in ("ask", "notebooks", "copies", "doctor", "skeleton", "grading", "explain", "audit")
    ),
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


def test_imports_run_one_way():
    wrong = []
    for module, path in MODULES.items():
        part = max((name for name in ALLOWED if within(module, name)), key=len, default=None)
        if part is None:
            wrong.append(f"{module} belongs to no part: say in this test what it may import")
            continue
        allowed = (part, *ALLOWED[part], "course_utils.inline", "course_utils.place")
        forbidden = [name for name in imports_of(path) if not any(within(name, other) for other in allowed)]
        wrong += [f"{module} imports {name}" for name in forbidden]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    """Also not for type checkers alone."""
    needs = {}
    for module, path in MODULES.items():
        found = {name if name in MODULES else name.rpartition(".")[0] for name in imports_of(path)}
        needs[module] = found & MODULES.keys() - {module}
    TopologicalSorter(needs).prepare()


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a new process has loaded after running `code`."""
    return loaded_in_turn(code)[-1]


def loaded_in_turn(code: str) -> list[set[str]]:
    """Return what was loaded wherever `code` printed `*sys.modules`, and at its end."""
    lines = printed_by(f"import torch\n{code}\nprint(*sys.modules)")
    return [{name.partition(".")[0] for name in line.split()} for line in lines if " torch " in line]


def printed_by(code: str) -> list[str]:
    """Return the lines that `code` prints in a new process, which computes in one thread as the grader's do."""
    command, environment = [sys.executable, "-c", f"import sys\n{code}"], {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


EXERCISE_TREES = (
    "course_utils/checks/observers",
    "course_utils/checks/scenes",
    "course_utils/checks/judges",
    "tests/answers",
)


@pytest.mark.parametrize("tree", EXERCISE_TREES)
def test_each_exercise_has_a_file_of_its_name_in_the_folder_of_its_lesson(tree):
    folders = sorted(path.name for path in (ROOT / tree).iterdir() if path.name.startswith("lesson_"))
    assert folders == [f"lesson_{lesson}" for lesson in LESSONS]
    homes = {path.stem: path.parent.name for path in (ROOT / tree).glob("lesson_*/*.py")}
    for name, exercise in exercises().items():
        # A prediction is a value: nothing runs it. And not every answer is tried on a scene.
        optional = "observers" in tree or "scenes" in tree
        assert homes.get(name, f"lesson_{exercise.lesson}" if optional else None) == f"lesson_{exercise.lesson}"


def test_no_file_is_told_apart_by_a_number():
    tests = [path for path in (ROOT / "tests").rglob("*.py")]
    assert not [path for path in [*MODULES.values(), *tests] if re.search(r"_\d+$", path.stem)]


def test_a_module_fits_on_a_few_pages():
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert not {module: count for module, count in lines.items() if count > 300}


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


def test_opening_ones_copy_loads_neither_pytorch_nor_a_server():
    """`course lab` becomes JupyterLab in a moment; what it loads before that, the learner waits for."""
    (line,) = printed_by("import course_utils.cli, course_utils.copies\nprint(*sys.modules)")
    loaded = {name.partition(".")[0] for name in line.split()}
    assert not loaded & {"torch", "numpy", "matplotlib", "sklearn", "nbclient", "jupyter_server", "jupyterlab_server"}


def test_a_command_loads_no_other():
    """Asking takes a moment: what the other commands import would double it."""
    code = "from course_utils.cli import course\ncourse(['ask', 'grad'], standalone_mode=False)\nprint(*sys.modules)"
    loaded = set(printed_by(code)[-1].split())
    assert "course_utils.ask.search" in loaded
    assert not {name for name in loaded if name.startswith(("course_utils.grading", "rich", "torch"))}


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
    code = "import pkgutil, importlib, course_utils.checks.observers as o, course_utils.checks.data\n"
    code += "names = [m.name for m in pkgutil.walk_packages(o.__path__, f'{o.__name__}.')]\n"
    code += "assert len(names) > 50\n"
    code += "[importlib.import_module(name) for name in names]\n"
    code += "assert not [n for n in sys.modules if n.startswith('course_utils.checks.judges')]"
    loaded_by(code)


def test_what_lives_beside_learner_code_loads_no_judge_and_nothing_of_the_trusted_side():
    code = "import pkgutil, importlib, course_utils.grading.sandbox as s\n"
    code += "[importlib.import_module(f'{s.__name__}.{m.name}') for m in pkgutil.iter_modules(s.__path__)]\n"
    code += "from course_utils.grading.sandbox.warm import Warmth\nWarmth().whole()\n"
    code += "print(*(n for n in sys.modules if n.startswith(('course_utils.checks.judges', 'course_utils.grading'))))"
    loaded = {name.removeprefix("course_utils.grading") for name in printed_by(code)[-1].split()}
    assert loaded > {"", ".wire", ".sandbox", ".sandbox.runner", ".sandbox.learner"}
    assert all(name in ("", ".wire", ".sandbox") or name.startswith(".sandbox.") for name in loaded)


@pytest.mark.parametrize("folder", ["intake", "controller", "outgoing"])
def test_the_trusted_side_loads_nothing_that_lives_beside_learner_code(folder):
    code = f"import pkgutil, importlib, course_utils.grading.{folder} as f\n"
    code += "[importlib.import_module(f'{f.__name__}.{m.name}') for m in pkgutil.iter_modules(f.__path__)]\n"
    code += "print(*(n for n in sys.modules if n.startswith('course_utils.grading')))"
    loaded = printed_by(code)[-1].split()
    assert f"course_utils.grading.{folder}" in loaded
    assert not [name for name in loaded if name.startswith("course_utils.grading.sandbox")]


def test_the_controller_needs_neither_pytorch_nor_a_judge():
    code = "import course_utils.grading.controller.pool, course_utils.grading.controller.cluster\n"
    code += "import course_utils.grading.grade\n"
    code += "assert not [n for n in sys.modules if n == 'torch' or n.startswith('course_utils.checks.judges')]"
    printed_by(code)


def test_what_was_handed_in_is_found_and_read_before_pytorch_is_there():
    code = "from pathlib import Path\nfrom course_utils.grading import gradebook, commands\n"
    code += "from course_utils.grading.intake import classroom, finding\n"
    code += "(found,) = finding.find([Path('exercises/00_start_here.ipynb')])\n"
    code += "assert found.assignment == '00_start_here'\nassert 'torch' not in sys.modules"
    printed_by(code)


def test_public_names():
    assert set(course_utils.__all__) >= {"check", "hint", "solution", "progress", "trace", "draw", "saved"}
    assert dir(course_utils) == sorted(course_utils.__all__)
    for name in course_utils.__all__:
        assert getattr(course_utils, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match="course_utils has no 'nothing'; it has CheckFailed, Explanation, audit"):
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


def test_conda_users_get_the_same_pins_and_what_learners_need():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (by_pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert by_pip == ["-c constraints.txt", "-e ."]


def test_doors_elsewhere_lead_to_what_is_there():
    """Docker, Binder and Codespaces cannot be run here. Their files name what exists, and the same PyTorch."""
    pinned = f"torch=={pins((ROOT / 'constraints.txt').read_text().split())['torch']}+cpu"
    binder = [line for line in (ROOT / "binder/requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert {"-e .", pinned} < set(binder)
    (constraints,) = (line.split()[1] for line in binder if line.startswith("-c "))
    assert (
        ROOT / "binder" / constraints
    ).resolve() == ROOT / "constraints.txt"  # pip reads it from where the file lies

    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    make, target, *_ = container["postCreateCommand"].split()
    assert make == "make"
    assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert container["postAttachCommand"].partition("/course ")[2] in cli.course.commands

    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert pinned in " ".join(lines)
    assert lines.index("USER learner") < min(number for number, line in enumerate(lines) if "pip install" in line)
    (command,) = (json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    assert command[:2] == ["course", "lab"]
    cli.lab.make_context("lab", command[2:])  # fails for an option that there is not
    (volume,) = re.findall(r"-v my-course:(\S+)", lines[0])
    assert f"COURSE_COPY={volume}" in " ".join(lines)
    assert f"docker run --rm -p 8888:8888 -v my-course:{volume} " in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
@pytest.mark.parametrize(
    ("given", "installs"),
    [
        (
            ("UV=",),
            ".venv/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt --no-compile -e .",
        ),
        (("UV=/x/uv",), "/x/uv pip install -q --python .venv/bin/python -c constraints.txt -e ."),
        (
            ("UV=/x/uv", "CPU=1"),
            "/x/uv pip install -q --python .venv/bin/python -c constraints.txt --torch-backend cpu -e .",
        ),
    ],
)
def test_make_installs_what_learners_need_with_uv_where_it_is_found(given, installs):
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", *given, ".venv/ready"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert installs in [" ".join(line.split()) for line in planned.stdout.splitlines()]


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
