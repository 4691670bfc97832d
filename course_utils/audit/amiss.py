"""What single loss functions are given that their definitions have no use for: one judgement each, of one call."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from course_utils.audit.events import Op, before, multiplies_weights, saved_value, through_views
from course_utils.audit.finding import Level
from course_utils.audit.lines import Spot, in_module
from course_utils.audit.source import calls, nearest, statement
from course_utils.graph.trace import GraphTooLarge, LiveNode, node_name, walk

_STD = re.compile(r"(^|_)(std|stds|stddev|stdev|std_?dev|sigma|scale)(_|\d|$)")
_PLAIN_STD = re.compile(r"(^|_)(std|stds|stddev|stdev|std_?dev)(_|\d|$)")
_LOG_VARIANCE = re.compile(r"log_?var", re.IGNORECASE)
_LOG_STD = re.compile(r"log_?(std|sigma)", re.IGNORECASE)
_SMALL, _LARGE, _SMOOTH, _CLASSES = -0.5, 2, 0.5, (3, 100)
_PROBABLE = 1e-2
_ROWS = 4
_SHARES = 0.05, 0.8
# Where a script speaks of these, one of its numbers may be no class.
_NO_CLASS = re.compile(
    r"unlabel|unknown|void|background|\bpad|_pad|blank|missing|no_?label|ignored|unannot|mask", re.IGNORECASE
)
_SCALED = ("MulBackward0", "DivBackward0", "AddBackward0")


class Amiss(NamedTuple):
    """What is wrong with a call of a loss."""

    headline: str
    why: str
    fix: str
    level: Level = "error"
    always: bool = False  # only worth saying where no call was otherwise
    made: Spot | None = None  # the line that made the loss, where that has to change


def amiss(event: Op, spot: Spot) -> Iterator[Amiss]:
    """Yield what is wrong with what a loss function was given."""
    judge = _JUDGES.get(event.name)
    if judge is not None:
        yield from judge(event, spot)


def _binary(event: Op, spot: Spot) -> Iterator[Amiss]:
    """Targets of -1 and 1, or of 0 and 255. Up to 2 they may be smoothed beyond 1, as for a GAN."""
    target = event.argument(1, "target")
    if not isinstance(target, torch.Tensor) or not target.numel() or event.argument(2, "weight") is not None:
        return
    low, high = float(target.min()), float(target.max())
    if event.kwargs.get("reduction") == "none" and not (low == -1 and bool((target.abs() == 1).all())):
        return  # what is marked by another number may be left out afterwards
    if low < _SMALL or high >= _LARGE:
        yield Amiss(
            f"{event.name} gets targets from {low:g} to {high:g}, and knows those from 0 to 1",
            "A target is the probability of a 1. Beyond 0 and 1 the loss has no lower bound: it goes on falling as the "
            "scores grow without end.",
            "target = (target > 0).float()  # 1 for one class, 0 for the other",
        )


def _scores(event: Op, spot: Spot) -> Iterator[Amiss]:
    """One class alone, or a smoothing that leaves less than half to the class that is meant."""
    given = event.argument(0, "input")
    smoothing = event.argument(7, "label_smoothing", 0.0)
    if isinstance(given, torch.Tensor) and given.dim() > 1 and given.shape[1] == 1:
        yield Amiss(
            "cross_entropy gets scores of a single class: the loss and its gradient are always 0",
            "It takes a softmax over the classes, along axis 1. Of one class the share is 1, whatever its score.",
            "F.binary_cross_entropy_with_logits(scores, target.float())  # or two scores for each sample",
            always=True,
        )
    elif isinstance(smoothing, float) and smoothing > _SMOOTH:
        yield Amiss(
            f"label_smoothing={smoothing:g} leaves {1 - smoothing:.2g} to the class that is meant",
            "It is the share that is spread over all classes, and not the one that the true class keeps.",
            f"label_smoothing={1 - smoothing:.2g}",
            "likely",
        )
    elif _is_multi_hot(event.argument(1, "target")):
        yield Amiss(
            "cross_entropy gets targets with several classes in some rows and none in others",
            "It compares with one distribution over all classes. A row of none adds nothing, and in a row of several "
            "the classes compete: no score can say of each alone whether it is there.",
            "F.binary_cross_entropy_with_logits(scores, target)  # each class by itself",
            always=True,
        )
    else:
        yield from _left_out(event, spot)
    if isinstance(given, torch.Tensor) and _is_of_rows(given) and _is_one(event.argument(1, "target"), len(given)):
        yield Amiss(
            "cross_entropy gets the likeness of each row to each other one, and one and the same answer for all rows",
            "The scores are products of the rows of one matrix with those of another, and row i belongs to row i. With "
            "one number for all, each row is drawn to the same one: that all are alike is the best answer.",
            "labels = torch.arange(len(scores), device=scores.device)",
            "likely",
            always=True,
        )


def _is_multi_hot(target: object) -> bool:
    if not isinstance(target, torch.Tensor) or not target.is_floating_point() or target.dim() != 2:
        return False
    classes = target.sum(1)
    return bool(((target == 0) | (target == 1)).all() and (classes > 1).any() and (classes == 0).any())


def _left_out(event: Op, spot: Spot) -> Iterator[Amiss]:
    """A class that samples often have, and that is left out as if it were padding."""
    given, target, number = event.argument(0, "input"), event.argument(1, "target"), event.argument(4, "ignore_index")
    if not isinstance(given, torch.Tensor) or not isinstance(target, torch.Tensor) or not isinstance(number, int):
        return
    if given.dim() != 2 or target.dim() != 1 or target.is_floating_point() or not 0 <= number < given.shape[1]:
        return
    share = float((target == number).float().mean()) if target.numel() else 0.0
    few, many = _SHARES
    if not few <= share <= many or len(target.unique()) < given.shape[1] or not _reads_numbers(given):
        return
    if not _NO_CLASS.search("".join(linecache.getlines(spot.file))):
        yield Amiss(
            f"cross_entropy leaves out class {number} of {given.shape[1]}, which is that of {share:.0%} of the targets",
            "ignore_index names targets that do not count, as padding does. Samples of this class have no loss, and "
            "all others push its score down: the model never gives it.",
            "F.cross_entropy(scores, target)  # ignore_index is for a number that is no class",
            "likely",
            always=True,
            made=nearest(calls(spot.file, r"\bCrossEntropyLoss$"), spot) if in_module() else None,
        )


def _reads_numbers(scores: torch.Tensor) -> bool:
    """Say whether scores come from layers for rows of numbers: no tokens are read, and no pictures or sequences."""
    try:
        names = {node_name(it) for it in walk([scores.grad_fn])}
    except GraphTooLarge:
        return False
    return not any(
        re.match(r"Embedding|Convolution|Lstm|Gru|Rnn|Cudnn|Miopen|Mkldnn|Bmm|Scaled|Index", it) for it in names
    )


def _is_one(target: object, rows: int) -> bool:
    """Say whether targets name one class alone."""
    return isinstance(target, torch.Tensor) and target.shape == (rows,) and bool((target == target[0]).all())


def _is_of_rows(scores: torch.Tensor) -> bool:
    """Say whether scores are a square product of two matrices that are computed, and none a layer's own weights."""
    if scores.dim() != 2 or scores.shape[0] != scores.shape[1] or len(scores) < _ROWS:
        return False
    node = through_views(scores.grad_fn)
    while node is not None and node_name(node) in _SCALED:
        inputs = [through_views(to) for to, _ in node.next_functions if to is not None]
        node = next((it for it in inputs if it is not None and node_name(it) in ("MmBackward0", *_SCALED)), None)
    return node is not None and node_name(node) == "MmBackward0" and not multiplies_weights(node)


def _several(event: Op, spot: Spot) -> Iterator[Amiss]:
    """A one for each class that holds, where the classes' numbers are wanted."""
    target = event.argument(1, "target")
    if isinstance(target, torch.Tensor) and target.shape[-1:] > (2,) and bool(((target == 0) | (target == 1)).all()):
        yield Amiss(
            "multilabel_margin_loss gets 0 and 1 for each class, and reads them as the numbers of classes",
            "It wants the numbers of the classes that hold, and -1 where they end: [3, 0, -1, -1].",
            "F.multilabel_soft_margin_loss(scores, target)  # it takes 0 and 1",
        )


def _transcript(event: Op, spot: Spot) -> Iterator[Amiss]:
    """The blank among the characters, longer texts than there are frames, scores for log-probabilities."""
    given, target = event.argument(0, "log_probs"), event.argument(1, "targets")
    frames, lengths = (torch.as_tensor(event.argument(at, name)) for at, name in _LENGTHS)
    blank = event.argument(4, "blank", 0)
    if target.dim() == 2 and lengths.dim() == 1:
        target = target[torch.arange(target.shape[1], device=target.device) < lengths.to(target.device)[:, None]]
    if bool((target == blank).any()):
        yield Amiss(
            f"ctc_loss finds its blank, {blank}, among the characters of the targets",
            "The blank stands for no character. A text that holds it teaches the model to say nothing there.",
            "number the characters from 1, or give blank= a number of its own",
        )
    if bool(((given.detach().exp().sum(-1) - 1).abs() > _PROBABLE).any()):
        yield Amiss(
            "ctc_loss gets numbers that are no log-probabilities",
            "It takes no softmax of its own. Their exponentials do not add up to 1, and the loss can be made small "
            "without saying anything right.",
            "F.ctc_loss(scores.log_softmax(dim=-1), ...)",
        )
    if frames.shape == lengths.shape and float((lengths > frames).float().mean()) > 1 / 2:
        yield Amiss(
            "most targets of ctc_loss are longer than the frames that they are to be read from",
            "Each character takes a frame. With fewer there is no way to write the text: the loss is infinite, or 0 "
            "with zero_infinity=True.",
            "input_lengths = frames after the model's strides; ctc_loss(log_probs, targets, input_lengths, "
            "target_lengths)",
        )


_LENGTHS = ((2, "input_lengths"), (3, "target_lengths"))


def _gaussian(event: Op, spot: Spot) -> Iterator[Amiss]:
    """A standard deviation or a logarithm for the variance."""
    given = event.argument(2, "var")
    made = through_views(given.grad_fn) if isinstance(given, torch.Tensor) else None
    text = _argument_text(spot, 2, "var")
    if made is None:
        return
    called = re.fullmatch(r"[\w.]+", text) is not None
    name = text.rpartition(".")[2].lower()
    kind = node_name(made)
    once = kind == "ExpBackward0" and node_name(through_views(before(made))) not in _SCALED
    if _is_root(made) or (called and _PLAIN_STD.search(name)) or (once and _LOG_STD.search(text)):
        yield _deviation(text, "likely")
    elif called and _STD.search(name):
        yield _deviation(text, "note")
    elif called and _LOG_VARIANCE.search(name) and kind not in ("ExpBackward0", "SoftplusBackward0"):
        yield Amiss(
            f"gaussian_nll_loss takes the variance, and gets its logarithm: {text}",
            "It takes the logarithm itself, and divides by what it is given. With a logarithm for the variance both "
            "are wrong, and one below 0 is an error.",
            f"F.gaussian_nll_loss(mean, target, {text}.exp())",
        )


def _deviation(text: str, level: Level) -> Amiss:
    return Amiss(
        f"gaussian_nll_loss takes the variance, and gets {text or 'its root'}",
        "It divides the squared error by what it is given. What is called or computed as a standard deviation is then "
        "moved to the variance: where it is below 1, it comes out too small.",
        f"F.gaussian_nll_loss(mean, target, {text or 'std'} ** 2)",
        level,
    )


def _is_root(node: LiveNode) -> bool:
    """Say whether a node takes a root: as such, or as the exponential of half a logarithm."""
    name, inner = node_name(node), through_views(before(node))
    if name == "SqrtBackward0" or (name == "PowBackward0" and node._saved_exponent == 1 / 2):
        return True
    if name != "ExpBackward0" or inner is None or node_name(inner) not in _SCALED[:2]:
        return False
    number = saved_value(inner, "other")
    half = 0.5 if node_name(inner) == "MulBackward0" else 2.0
    return number is not None and number.numel() == 1 and float(number) == half


def _argument_text(spot: Spot, at: int, name: str) -> str:
    """Return the text of an argument, where one call alone at a line has so many."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None else ():
        if isinstance(node, ast.Call):
            keywords = [it.value for it in node.keywords if it.arg == name]
            given = keywords or node.args[at : at + 1]
            if given:
                return ast.unparse(given[0])
    return ""


def _numbers(event: Op, spot: Spot) -> Iterator[Amiss]:
    """Numbers of classes as values: whole numbers from 0 on, that were integers a line before."""
    target, given = event.argument(1, "target"), event.argument(0, "input")
    if not isinstance(target, torch.Tensor) or not isinstance(given, torch.Tensor) or target.requires_grad:
        return
    few, many = _CLASSES
    if not few <= target.numel() or bool((target != target.round()).any()) or float(target.min()) != 0:
        return
    classes = target.unique()
    if few <= len(classes) == int(classes[-1]) + 1 <= min(many, target.numel() // 2) and not given.dim() > 2:
        yield Amiss(
            f"{event.name} compares with the whole numbers from 0 to {int(classes[-1])}",
            "If these are classes, the loss takes class 0 for farther from class 2 than class 1 is, and its best "
            "answer between two of them is a third one. For counts and ratings it is right.",
            "F.cross_entropy(scores, classes)  # with a score for each class",
            "note",
            always=True,
        )


_JUDGES: dict[str, Callable[[Op, Spot], Iterator[Amiss]]] = {
    "binary_cross_entropy_with_logits": _binary,
    "multilabel_soft_margin_loss": _binary,
    "cross_entropy": _scores,
    "multilabel_margin_loss": _several,
    "ctc_loss": _transcript,
    "gaussian_nll_loss": _gaussian,
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"), _numbers),
}
JUDGED = frozenset(_JUDGES)
