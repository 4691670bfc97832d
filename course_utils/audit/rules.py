"""Every code that an audit can say: how grave it is, where it is taught, what it makes superfluous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from course_utils.audit.finding import Level


@dataclass(frozen=True)
class Rule:
    """A code's usual level, its tier, its section, and the codes that follow from it and are then not said."""

    level: Level
    tier: Literal["default", "full"]
    section: str
    hides: tuple[str, ...] = ()


_ORDER = "07_gradient_accumulation#The-order-in-a-window:-zero_grad,-backward,-clip,-step,-scheduler"
_CLEAR = "07_gradient_accumulation#What-zero_grad-is-for"
_SCALED = "deeper/07_training_at_scale#Mixed-precision:-unscale-before-you-clip"
_LIST = "09_practical_checklist#The-checklist-as-code"
_CUTS = 'deeper/06_where_to_cut#".item(),-NumPy,-torch.tensor(loss),-argmax,-rounding":-cuts-that-nobody-meant'
_FROZEN = 'deeper/09_practical_checklist#"I-froze-the-layer":-does-it-stay-as-it-was?'
_MODE = "deeper/09_practical_checklist#model.eval()-that-was-never-undone"
_PARTS = "deeper/01_leaves_and_flags#A-plain-list,-a-new-head,-a-copy:-parameters-that-fall-out"
_KEPT = "deeper/09_practical_checklist#Memory-grows-from-step-to-step:-what-a-log-keeps"
_CHECKPOINTS = "deeper/09_practical_checklist#All-checkpoints-are-the-same"
_SOFTMAX = "09_practical_checklist#What-the-loss-is-given"
_SHAPES = (
    'deeper/09_faults_that_hide_faults#"Using-a-target-size-that-is-different-to-the-input-size"'
    ":-a-wrong-shape-that-works"
)
_GAN = "06_detach_vs_no_grad#The-two-steps-of-a-GAN"
_ALGORITHMS = "06_detach_vs_no_grad#Where-to-cut-in-each-algorithm"
_EVAL = "06_detach_vs_no_grad#eval()-does-not-switch-gradients-off"
_TRUNCATED = "04_retain_graph#Hidden-state-between-sequences:-truncated-backpropagation"
_RECOMPUTED = (
    'deeper/03_checkpointing_and_hooks#Checkpoint-errors:-reentrant-or-not,-frozen-inputs,-"Recomputed-values"'
)
_RELU = "deeper/05_higher_order_gradients#Second-derivatives-of-relu-and-its-kin"
_PENALTY = "05_higher_order_gradients#Gradient-penalties:-a-gradient-inside-the-loss"
_SLOPES = "deeper/05_gradient_penalties#One-pass,-a-hundred-slopes"
_CREATE = 'deeper/05_higher_order_gradients#Claim-H4:-"backward(create_graph=True)-is-a-harmless-way-to-get-there"'

RULES: dict[str, Rule] = {
    "no-zero-grad": Rule(
        "error", "default", _CLEAR, ("wrong-loss", "gan-detach", "leftover-window", "not-divided", "pass-in-validation")
    ),
    "zero-before-step": Rule("error", "default", _ORDER, ("leftover-window", "never-reached")),
    "step-first": Rule("error", "default", _ORDER, ("zero-before-step", "step-without-backward", "leftover-window")),
    "step-without-backward": Rule("error", "default", _ORDER, ("leftover-window", "graph-in-validation")),
    "not-in-optimizer": Rule("likely", "default", _LIST, ("never-reached",)),
    "other-tensors": Rule(
        "error", "default", _LIST, ("step-without-backward", "not-in-optimizer", "never-reached", "leftover-window")
    ),
    "never-reached": Rule("error", "full", _LIST, ("step-without-backward", "constant-term")),
    "loss-unused": Rule("likely", "full", _LIST, ("never-reached", "graph-in-validation")),
    "zero-gradient": Rule("error", "full", _CUTS),
    "constant-term": Rule("likely", "full", _CUTS),
    "misspelt-freeze": Rule("error", "default", _FROZEN, ("not-in-optimizer", "frozen-moves", "frozen")),
    "freezes-nothing": Rule("likely", "default", _FROZEN, ("not-in-optimizer", "frozen", "name-fits-nothing")),
    "setting-ignored": Rule("error", "default", _LIST, ("eval-in-train", "left-in-eval")),
    "no-effect": Rule(
        "error",
        "default",
        _LIST,
        ("step-without-backward", "left-in-eval", "eval-in-train", "never-reached", "leftover-window", "step-scaled"),
    ),
    "frozen": Rule("likely", "default", _FROZEN, ("step-without-backward", "never-reached")),
    "rows-move": Rule("error", "default", _FROZEN),
    "optimizer-anew": Rule("error", "default", _ORDER),
    "data-drifts": Rule("error", "default", _KEPT),
    "target-not-flipped": Rule("likely", "default", _LIST),
    "scaled-apart": Rule("likely", "default", _LIST),
    "selected-by-all": Rule("likely", "default", _LIST),
    "bound-misplaced": Rule("likely", "default", _LIST),
    "class-axis": Rule("likely", "default", _LIST),
    "metric-miscounted": Rule("likely", "default", _LIST),
    "validated-on-training": Rule("likely", "default", _LIST),
    "augmented-evaluation": Rule("likely", "default", _LIST),
    "best-forgotten": Rule("likely", "default", _CHECKPOINTS),
    "bytes-wrap": Rule("likely", "default", _LIST),
    "fitted-again": Rule("likely", "default", _LIST),
    "ids-apart": Rule("likely", "default", _LIST),
    "labels-blended": Rule("likely", "default", _LIST),
    "unmasked-asked": Rule("likely", "default", _LIST),
    "mixed-apart": Rule("likely", "default", _LIST),
    "score-minimised": Rule("likely", "default", _LIST),
    "focal-reversed": Rule("likely", "default", _LIST),
    "average-left-in": Rule("likely", "default", _CHECKPOINTS),
    "adapter-frozen": Rule("error", "default", _FROZEN),
    "other-table": Rule("likely", "default", _LIST),
    "positions-of-batch": Rule("likely", "default", _LIST),
    "weighed-after-mean": Rule("error", "full", _ORDER),
    "overlap-of-scores": Rule("likely", "default", _SOFTMAX),
    "pixels-scaled": Rule("likely", "default", _LIST, ("dead-units", "zero-gradient")),
    "noise-copied": Rule("likely", "full", _LIST),
    "kept-by-number": Rule("likely", "default", _LIST, ("shuffled-apart",)),
    "zero-wins": Rule("likely", "full", _LIST, ("constant-term",)),
    "mixed-derivatives": Rule("likely", "full", _SLOPES),
    "loader-empty": Rule("likely", "default", _LIST),
    "held-out-trained": Rule("likely", "default", _LIST, ("validated-on-training",)),
    "held-twice": Rule("likely", "default", _GAN, ("wrong-loss", "gan-detach")),
    "rate-far-off": Rule("likely", "default", _ORDER, ("update-lost", "dead-units", "nan-began")),
    "loss-climbs": Rule("likely", "default", _ORDER, ("nan-began",)),
    "setting-far-off": Rule("likely", "default", _LIST, ("units-alike", "update-lost")),
    "quantile-reversed": Rule("likely", "full", _LIST),
    "penalty-signed": Rule("likely", "full", _LIST),
    "volume-reversed": Rule("likely", "full", _LIST),
    "reversal-missing": Rule("likely", "full", _ALGORITHMS),
    "decay-on-vectors": Rule("likely", "default", _LIST, ("name-fits-nothing",)),
    "plateau-direction": Rule("error", "default", _ORDER, ("schedule-too-fast", "update-lost", "rate-zero")),
    "compared-with-itself": Rule("error", "full", _SOFTMAX),
    "sorted-batches": Rule("likely", "default", _LIST),
    "padding-counted": Rule("likely", "full", _LIST),
    "not-shifted": Rule("error", "full", _LIST),
    "summed-loss": Rule("likely", "default", _ORDER, ("nan-began", "dead-units", "zero-gradient", "update-lost")),
    "frozen-moves": Rule("error", "default", _FROZEN, ("frozen",)),
    "left-in-eval": Rule("likely", "default", _MODE),
    "eval-in-train": Rule("likely", "default", _EVAL),
    "graph-in-validation": Rule("likely", "default", _EVAL),
    "pass-in-validation": Rule("likely", "default", _EVAL, ("not-divided", "leftover-window", "left-in-eval")),
    "copy-is-itself": Rule("error", "full", _FROZEN),
    "one-member": Rule("likely", "default", _PARTS),
    "state-is-alias": Rule("error", "default", _CHECKPOINTS, ("held-out-trained",)),
    "nothing-loaded": Rule("error", "default", _CHECKPOINTS),
    "closure-draws": Rule("likely", "default", _LIST),
    "trained-elsewhere": Rule("likely", "default", _LIST),
    "not-saved": Rule("likely", "default", _CHECKPOINTS),
    "kept-losses": Rule("error", "default", _KEPT),
    "running-total": Rule("error", "default", _KEPT, ("kept-losses", "needless-retain", "same-loss-twice")),
    "carried-state": Rule(
        "error",
        "default",
        _TRUNCATED,
        ("needless-retain", "kept-losses", "running-total", "same-loss-twice", "needless-create-graph"),
    ),
    "same-loss-twice": Rule(
        "error",
        "default",
        "deeper/04_retain_graph#Which-of-several-passes-must-not-retain",
        ("needless-retain", "not-divided", "kept-losses"),
    ),
    "needless-retain": Rule("likely", "default", "04_retain_graph#When-retaining-is-right"),
    "needless-create-graph": Rule("likely", "default", _CREATE, ("kept-losses", "running-total", "needless-retain")),
    "softmax-twice": Rule("error", "full", _SOFTMAX),
    "sigmoid-twice": Rule("error", "full", _SOFTMAX),
    "log-missing": Rule("error", "full", _SOFTMAX),
    "loss-argument": Rule("error", "full", _LIST),
    "output-bounded": Rule("likely", "full", _SOFTMAX, ("dead-units", "zero-gradient")),
    "temperature-misplaced": Rule("likely", "full", _SOFTMAX),
    "attention-scale": Rule("likely", "full", _LIST),
    "positive-repelled": Rule("likely", "full", _LIST),
    "weights-reversed": Rule("likely", "full", _LIST),
    "state-cut": Rule("likely", "full", _TRUNCATED),
    "state-of-others": Rule("likely", "full", _TRUNCATED),
    "axes-swapped": Rule("likely", "full", _LIST),
    "one-end-of-both": Rule("likely", "full", _LIST),
    "mask-inverted": Rule("likely", "default", _LIST),
    "overwritten": Rule("likely", "full", _FROZEN),
    "recomputed-otherwise": Rule("error", "full", _RECOMPUTED),
    "broadcast-loss": Rule("error", "full", _SHAPES, ("broadcast-square",)),
    "broadcast-square": Rule("likely", "full", _SHAPES),
    "mean-squared": Rule("likely", "full", _LIST),
    "kl-outweighs": Rule("likely", "full", _LIST),
    "weight-of-zero": Rule("likely", "full", _LIST),
    "view-not-transpose": Rule("likely", "full", _SHAPES),
    "softmax-axis": Rule("likely", "full", _SOFTMAX),
    "sees-target": Rule("error", "full", _LIST),
    "padded-step": Rule("likely", "full", _LIST),
    "reward-minimised": Rule("likely", "full", _ALGORITHMS),
    "wrong-return": Rule("likely", "full", _ALGORITHMS),
    "other-sample": Rule("likely", "full", _ALGORITHMS),
    "argmax-of-one": Rule("likely", "default", _LIST),
    "worst-kept": Rule("likely", "default", _CHECKPOINTS),
    "noise-once": Rule("likely", "full", _GAN),
    "wrong-way": Rule("likely", "full", _ALGORITHMS),
    "ratio-one": Rule("likely", "full", _ALGORITHMS),
    "tie-broken": Rule("likely", "default", _LIST),
    "stale-statistics": Rule("likely", "default", _EVAL),
    "clip-after-step": Rule("error", "default", _ORDER),
    "clip-scaled": Rule("error", "default", _SCALED),
    "step-scaled": Rule("error", "default", _SCALED),
    "clip-nothing": Rule("error", "default", _ORDER),
    "scheduler-first": Rule(
        "error",
        "default",
        'deeper/07_training_at_scale#"Detected-call-of-lr_scheduler.step()-before-optimizer.step()"',
    ),
    "schedule-too-fast": Rule("likely", "default", _ORDER, ("update-lost", "rate-zero")),
    "schedule-too-slow": Rule("likely", "default", _ORDER, ("rate-zero",)),
    "schedule-of-other": Rule("error", "default", _ORDER),
    "schedule-doubled": Rule("likely", "default", _ORDER),
    "rate-zero": Rule("likely", "default", _ORDER, ("update-lost",)),
    "average-follows": Rule("likely", "full", _FROZEN),
    "straight-through-reversed": Rule(
        "error", "full", _CUTS, ("never-reached", "zero-gradient", "constant-term", "straight-through-missing")
    ),
    "straight-through-missing": Rule("likely", "full", _CUTS),
    "name-fits-nothing": Rule("likely", "default", _LIST, ("not-in-optimizer", "frozen")),
    "kept-by-reference": Rule("error", "full", _LIST),
    "buffer-is-gradient": Rule("error", "full", _LIST),
    "shuffled-apart": Rule("error", "full", _LIST),
    "noise-anew": Rule("likely", "full", _LIST),
    "clip-in-window": Rule("likely", "default", _ORDER),
    "iterator-spent": Rule("error", "default", _LIST, ("leftover-window",)),
    "never-drawn": Rule("error", "full", _LIST),
    "seed-repeats": Rule("likely", "default", _LIST),
    "not-divided": Rule("likely", "default", "07_gradient_accumulation#Micro-batches-equal-to-the-full-batch"),
    "leftover-window": Rule("likely", "default", "07_gradient_accumulation#The-last-window-is-not-full"),
    "data-write": Rule("error", "full", "deeper/06_detach_vs_no_grad#.data,-and-where-it-comes-from", ("nan-began",)),
    "discarded-detach": Rule(
        "error", "full", "06_detach_vs_no_grad#detach()-cuts-one-edge", ("carried-state", "needless-retain")
    ),
    "wrapped-loss": Rule(
        "error",
        "default",
        _CUTS,
        ("step-without-backward", "never-reached", "other-tensors", "step-first", "loss-unused"),
    ),
    "gan-detach": Rule(
        "error",
        "default",
        _GAN,
        ("step-without-backward", "never-reached", "wrong-loss", "zero-before-step"),
    ),
    "wrong-loss": Rule("error", "default", _ALGORITHMS, ("ratio-one",)),
    "silent-function": Rule(
        "error",
        "full",
        "deeper/10_what_pytorch_checks#Why-is-my-gradient-None?-And-why-does-my-result-have-no-graph?",
        ("never-reached", "step-without-backward"),
    ),
    "derivative-cut": Rule("likely", "full", _PENALTY, ("constant-term", "needless-retain")),
    "derivative-zero": Rule("likely", "full", _RELU),
    "sample-cut": Rule("likely", "full", _CUTS),
    "derivative-differs": Rule("likely", "full", "10_custom_functions#Is-it-right?-gradcheck"),
    "weight-escapes": Rule("likely", "full", _LIST),
    "mark-dirty": Rule("error", "full", "deeper/10_custom_functions#In-place:-mark_dirty"),
    "ignores-incoming": Rule("likely", "full", "10_custom_functions#Is-it-right?-gradcheck", ("derivative-differs",)),
    "update-lost": Rule("likely", "default", _LIST),
    "hooks-pile-up": Rule("error", "default", "08_intermediate_gradients#Taking-hooks-away"),
    "nan-began": Rule(
        "error",
        "default",
        'deeper/09_faults_that_hide_faults#"loss-is-NaN":-where-NaN-gradients-come-from',
        ("dead-units", "zero-gradient"),
    ),
    "cast-to-zeros": Rule("likely", "full", _LIST, ("dead-units", "zero-gradient", "constant-term")),
    "sample-misread": Rule("likely", "full", _LIST, ("dead-units", "zero-gradient")),
    "target-in-window": Rule("likely", "full", _LIST),
    "normalised-axis": Rule("likely", "full", _SOFTMAX),
    "layer-anew": Rule("error", "full", _PARTS, ("never-reached", "not-in-optimizer")),
    "training-undone": Rule("likely", "default", _ALGORITHMS),
    "mask-lost": Rule("likely", "default", _FROZEN),
    "units-alike": Rule("error", "full", _LIST, ("dead-units", "zero-gradient")),
    "padding-row": Rule("note", "full", _LIST),
    "no-nonlinearity": Rule("note", "full", _LIST),
    "added-to-itself": Rule("likely", "full", _LIST),
    "mask-after-softmax": Rule("likely", "full", _LIST),
    "variance-as-std": Rule("likely", "full", _LIST),
    "last-of-loop": Rule("likely", "default", _ORDER, ("loss-unused", "never-reached")),
    "mask-forgotten": Rule("likely", "full", _LIST),
    "noise-weights": Rule("likely", "full", _LIST),
    "slope-axis": Rule("likely", "full", _SLOPES),
    "ascent-not-undone": Rule("likely", "default", _ORDER),
    "members-alike": Rule("likely", "default", _LIST),
    "input-not-held": Rule("likely", "default", _LIST, ("frozen", "dead-units", "zero-gradient")),
    "adaptation-unmeasured": Rule("likely", "default", _ALGORITHMS),
    "spread-zero": Rule("likely", "default", _LIST, ("nan-began", "dead-units", "zero-gradient")),
    "dead-units": Rule(
        "likely",
        "full",
        "08_intermediate_gradients#Reading-the-flow:-where-a-deep-network-loses-its-gradient",
        ("zero-gradient",),
    ),
}
