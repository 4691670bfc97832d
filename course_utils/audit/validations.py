"""What a script calls a validation, and computes on the training's data or with the training's random changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_named, names_read, parameters, parts
from course_utils.audit.namings import is_held, is_trained
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.source import tree_of
from course_utils.explain.source import called, names_of

_METRICS = re.compile(r"acc|loss|f1|err|score|auc|metric|rmse|mae|mse|iou|dice|ppl|result|perplex|hits|correct", re.I)
_EVALUATES = re.compile(r"eval|valid|^val|_val|test|score|accuracy|predict", re.I)
_FLAGS = re.compile(r"^(augment\w*|aug|do_aug\w*|use_aug\w*|train|is_train\w*|training|random_\w+|jitter|mixup)$", re.I)
_TRANSFORMS = re.compile(r"transform|augment|^aug$|^tf$", re.I)
_CHANCE = re.compile(r"Random|ColorJitter|rand|augment|jitter|flip|nois", re.I)


def validations(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the evaluations that go through the training's data by name."""
    for file, scope in scopes:
        if isinstance(scope, ast.FunctionDef) and _EVALUATES.search(scope.name) and not is_trained(scope.name):
            yield from _of_function(file, scope)
        for node in parts(scope):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
                yield from _of_call(file, node, node.value, seen)


def _of_function(file: str, function: ast.FunctionDef) -> Iterator[Told]:
    """Yield the loop over the training's data in a function that is given other data, and reads none of it."""
    given = parameters(function)
    read = {name for line in function.body for name in names_read(line)}
    bound = {it.id for it in ast.walk(function) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    unread = [name for name in given if name not in read and re.search(r"load|data|dl|set|ds|batch|x|iter", name, re.I)]
    if re.search(r"backward\(|\.step\(|\b(train|fit)_?\w+\(", ast.unparse(function)):
        return
    for node in ast.walk(function):
        if isinstance(node, ast.For):
            names = names_of(node.iter)
            trained = sorted(it for it in names - bound - set(given) if is_trained(it))
            if trained and not any(map(is_held, names)) and (unread or is_held(function.name)):
                yield _on_training(Spot(file, node.lineno), function.name, trained[0])


def _of_call(file: str, line: ast.Assign, call: ast.Call, seen: Seen) -> Iterator[Told]:
    target, given = line.targets[0], names_of(*call.args, *(it.value for it in call.keywords))
    names = sorted(names_of(target))
    trained = sorted(filter(is_trained, given))
    if not names or not all(map(is_held, names)) or not trained or any(map(is_held, given)):
        return
    name = called(call)
    own = list(functions_named(file, name))
    measures = bool(own) and all(_METRICS.search(it) for it in names) and not re.search("train|fit|split", name, re.I)
    loads = name == "DataLoader" and isinstance(call.args[0] if call.args else None, ast.Name)
    sampled = any(it.arg in ("sampler", "batch_sampler") for it in call.keywords)
    asks = not own and seen.at(file, call) is not None
    if asks or (measures and "backward(" not in ast.unparse(own[0])) or (loads and not sampled):
        yield _on_training(Spot(file, line.lineno), ", ".join(names), trained[0])


def _on_training(spot: Spot, what: str, data: str) -> Told:
    return Told(
        "validated-on-training",
        spot,
        f"{what} is computed on {data}: what the model was trained on",
        "A model that knows its training rows by heart has the best score there is on them. The number says nothing of "
        "new data, and neither does what is chosen by it.",
        "use the data that was held out here",
        (what, data),
    )


def augmented(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the data sets for evaluation that are made with the training's random changes."""
    for file, scope in scopes:
        lines = [it for it in parts(scope) if isinstance(it, ast.Assign) and _made(it) is not None]
        flagged = {key for it in lines for key in _flags(it) if any(map(is_trained, names_of(*it.targets)))}
        for line in lines:
            names = sorted(names_of(*line.targets))
            made = _made(line)
            if not names or not all(map(is_held, names)) or made is None:
                continue
            for key in sorted(_flags(line) & flagged) if _draws(file, called(made)) else ():
                yield _changed(Spot(file, line.lineno), names[0], key)
            for name in _transforms(made):
                if is_trained(name) and _is_random(scopes, name):
                    yield _changed(Spot(file, line.lineno), names[0], name)


def _made(line: ast.Assign) -> ast.Call | None:
    """Return the call that makes a data set, also one that stands within that of its loader."""
    made: ast.expr | None = line.value
    if called(made) == "DataLoader" and isinstance(made, ast.Call):
        made = made.args[0] if made.args else None
    return made if isinstance(made, ast.Call) else None


def _draws(file: str, name: str) -> bool:
    """Say whether a class or function of the file changes anything by chance."""
    tree = tree_of(file)
    kinds = [it for it in (ast.walk(tree) if tree else ()) if isinstance(it, ast.ClassDef | ast.FunctionDef)]
    return any(it.name == name and _CHANCE.search(ast.unparse(it)) is not None for it in kinds)


def _flags(line: ast.Assign) -> set[str]:
    """Return the keywords that switch random changes on."""
    made = _made(line)
    keywords = made.keywords if made is not None else []
    on = [it for it in keywords if it.arg and isinstance(it.value, ast.Constant) and it.value.value is True]
    return {f"{it.arg}=True" for it in on if _FLAGS.match(it.arg or "")}


def _transforms(call: ast.Call) -> Iterator[str]:
    for it in call.keywords:
        if it.arg and _TRANSFORMS.search(it.arg) and isinstance(it.value, ast.Name):
            yield it.value.id
    yield from (it.id for it in call.args if isinstance(it, ast.Name) and _TRANSFORMS.search(it.id))


def _is_random(scopes: Scopes, name: str) -> bool:
    """Say whether what a name stands for is made or defined with chance."""
    for _, scope in scopes:
        if isinstance(scope, ast.FunctionDef) and scope.name == name and _CHANCE.search(ast.unparse(scope)):
            return True
        for node in parts(scope):
            if isinstance(node, ast.Assign) and name in names_of(*node.targets):
                return _CHANCE.search(ast.unparse(node.value)) is not None
    return False


def _changed(spot: Spot, data: str, by: str) -> Told:
    return Told(
        "augmented-evaluation",
        spot,
        f"{data} is made with {by}: its rows are changed by chance, as those of the training are",
        "Random crops, flips and noise are for the training. In evaluation they make the same model score differently "
        "each time, and lower than it is.",
        "give the held-out data the transformation without chance",
        (data,),
    )
