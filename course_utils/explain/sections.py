"""Which section of the course teaches what a code names: one table for cards and for findings of audits."""

from __future__ import annotations

from course_utils.inline import anchor

# By notebook: its headings as they stand there, and the codes that each teaches.
_TAUGHT: dict[str, dict[str, tuple[str, ...]]] = {
    "01_graph_structure": {
        "Why the stem did not learn": ("parameter-never-reached", "loss-wrapped-anew"),
    },
    "deeper/01_graph_structure": {
        "The parameters of a module are leaves": (
            "parameter-not-tensor",
            "module-before-init",
            "module-without-forward",
            "class-for-model",
            "not-a-module",
            "state-keys",
            "state-shape",
            "state-groups",
        ),
    },
    "deeper/01_leaves_and_flags": {
        '"can\'t optimize a non-leaf Tensor": how a leaf stops being one': (
            "optimizer-non-leaf",
            "parameter-non-leaf",
        ),
        '"a leaf Variable that requires grad is being used in an in-place operation"': (
            "leaf-in-place",
            "leaf-view-in-place",
            "resize-refused",
        ),
        '"you can only change requires_grad flags of leaf variables"': ("flag-of-non-leaf",),
        "A plain list, a new head, a copy: parameters that fall out": (
            "optimizer-of-nothing",
            "optimizer-of-no-tensors",
            "optimizer-of-other-tensors",
            "parameters-twice",
            "not-in-optimizer",
        ),
    },
    "deeper/01_views_and_large_graphs": {
        "Views rewrite the graph too": (
            "view-of-several-in-place",
            "view-from-no-grad-in-place",
            "expanded-in-place",
            "view-strides",
        ),
        "In-place operations rewrite the graph": ("out-argument",),
        "Deep graphs": ("graph-too-deep",),
    },
    "02_how_backward_works": {
        "Broadcasting, undone": ("shapes", "matrix-shapes", "channels", "grad-shape"),
    },
    "deeper/02_starting_a_pass": {
        '"grad can be implicitly created only for scalar outputs"': (
            "seed-missing",
            "complex-loss",
            "seed-type",
            "seed-count",
            "not-one-number",
            "seed-shape",
        ),
        '"element 0 of tensors does not require grad"': ("no-graph", "no-graph-inputs"),
    },
    "deeper/02_how_backward_works": {
        '"not used in the graph"': ("not-in-graph", "input-without-grad"),
        "Brought to shape: broadcasting, expand, dtype": ("complex-cast", "integers-updated"),
    },
    "deeper/02_jacobians_and_checks": {
        "Is the gradient right? Ask with numbers": ("gradcheck-precision",),
    },
    "03_graph_freeing": {
        "Hoarding: memory that grows from step to step": ("graph-grows", "deepcopy-non-leaf"),
    },
    "deeper/03_written_in_place": {
        'Written in place: version counters, and "modified by an inplace operation"': ("in-place",),
    },
    "deeper/03_checkpointing_and_hooks": {
        "Saved-tensor hooks: saving something else": ("saved-hook",),
        'Checkpoint errors: reentrant or not, frozen inputs, "Recomputed values"': (
            "checkpoint-recomputed",
            "checkpoint-reentrant",
            "checkpoint-inputs",
            "checkpoint-grad",
        ),
    },
    "04_retain_graph": {
        '"Trying to backward through the graph a second time": what it means and what causes it': (
            "second-time",
            "same-loss-twice",
            "computed-once",
            "saved-read-late",
        ),
        "Several losses and several optimizers on a shared trunk": ("shared-trunk",),
        '"modified by an inplace operation" after optimizer.step()': ("in-place-by-step",),
        "When retaining is right": ("needless-retain",),
        "Hidden state between sequences: truncated backpropagation": ("carried-state", "hidden-shape"),
    },
    "deeper/05_higher_order_gradients": {
        '"element 0 of tensors does not require grad", in second order': ("no-graph-second-order",),
        '"appears to not have been used in the graph", in second order': ("not-in-graph-second-order",),
        'The warning: "will create a reference cycle"': ("reference-cycle", "create-graph-leak"),
        '"derivative for ... is not implemented"': ("no-derivative",),
    },
    "deeper/05_maml_newton_and_forward_mode": {
        '"ZeroTensors are immutable"': ("zero-tensor",),
        "Jacobians and Hessians, by hand and with torch.func": (
            "transform-backward",
            "vmap-item",
            "vmap-branch",
            "vmap-in-place",
        ),
        "Learning through a training step": ("wrong-loss-learns",),
    },
    "06_detach_vs_no_grad": {
        "detach() cuts one edge": ("no-graph-detach", "detach-discarded", "graph-to-other-process"),
        "no_grad() records nothing": ("no-graph-no-grad",),
        "eval() does not switch gradients off": ("validation-records-graph",),
        "The two steps of a GAN": ("detach-wrong-side",),
    },
    "deeper/06_detach_vs_no_grad": {
        "clone, detach, and their order": ("copy-construct",),
        ".data, and where it comes from": ("write-through-data",),
        "Four ways to freeze, compared": ("no-graph-frozen", "frozen-by-accident", "frozen-misspelt"),
        "Inference mode and its errors": ("inference-tensor", "no-graph-inference"),
    },
    "deeper/06_where_to_cut": {
        "Targets that stand still": ("target-needs-grad",),
        '"Can\'t call numpy() on Tensor that requires grad"': ("numpy-of-graph",),
        '".item(), NumPy, torch.tensor(loss), argmax, rounding": cuts that nobody meant': (
            "no-graph-new-tensor",
            "no-graph-item",
            "no-graph-numpy",
            "no-graph-argmax",
            "no-graph-integers",
            "not-a-tensor",
            "loss-not-called",
            "name-taken",
            "no-rsample",
            "grad-needs-floats",
        ),
    },
    "07_gradient_accumulation": {
        "What zero_grad is for": ("no-zero-grad",),
        "Where zero_grad goes": ("zero-grad-after-backward",),
        "Micro-batches equal to the full batch": ("accumulation-not-divided",),
        "The last window is not full": ("leftover-window",),
        "The order in a window: zero_grad, backward, clip, step, scheduler": (
            "closure-missing",
            "step-given-loss",
            "other-owner",
            "metrics-missing",
            "scheduler-initial-lr",
            "scheduler-of-no-optimizer",
            "scheduler-groups",
            "scheduler-too-long",
            "scheduler-setting",
            "optimizer-setting",
            "clip-after-step",
            "clip-of-nothing",
            "non-finite-norm",
            "grad-assigned",
            "step-before-backward",
        ),
    },
    "deeper/07_gradient_accumulation": {
        "None or zero, optimizer by optimizer": ("sparse-gradient",),
        "\"'NoneType' object has no attribute 'norm'\"": ("grad-is-none", "step-without-backward"),
        "Where equality fails: batch norm and other losses of a whole batch": ("batch-norm-one-value",),
    },
    "deeper/07_training_at_scale": {
        '"Detected call of lr_scheduler.step() before optimizer.step()"': ("scheduler-first", "scheduler-epoch"),
        "Mixed precision: unscale before you clip": (
            "scaler-without-gradients",
            "scaler-unscaled-twice",
            "scaler-stage",
            "clip-before-unscale",
        ),
        "Per-sample gradients with torch.func": ("vmap-random", "vmap-sizes", "transform-inputs", "transform-outputs"),
    },
    "08_intermediate_gradients": {
        '"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"': ("grad-of-non-leaf",),
        "Taking hooks away": ("hooks-pile-up",),
        "Reading the flow: where a deep network loses its gradient": ("dead-units",),
    },
    "deeper/08_intermediate_gradients": {
        '"can\'t retain_grad on Tensor that has requires_grad=False"': ("retain-grad-refused",),
    },
    "deeper/08_hooks_in_order": {
        "Tensor hooks: what a hook returns replaces the gradient": ("hook-result",),
        '"cannot register a hook on a tensor that doesn\'t require gradient"': ("hook-without-graph",),
        "Node hooks, post-accumulate hooks, and the order of all": ("hook-on-leaves-only",),
        '"My backward hook is never called", or gets None': ("hook-not-firing", "hook-incomplete"),
        '"Output 0 of BackwardHookFunction is a view and is being modified inplace"': ("hooked-module-in-place",),
    },
    "09_practical_checklist": {
        "What the loss is given": ("softmax-twice", "softmax-dim", "sigmoid-twice", "log-missing"),
        "The checklist as code": (
            "target-dtype",
            "target-range",
            "target-unit-range",
            "weight-shape",
            "dtype-mismatch",
            "index-dtype",
            "index-range",
            "half-and-double",
            "layer-setting",
            "loss-setting",
            "kl-div-mean",
            "dropout-without-effect",
            "input-not-a-tensor",
            "input-shape",
            "input-dimensions",
            "image-too-small",
            "joined-shapes",
            "stacked-shapes",
            "element-count",
            "device-mismatch",
            "meta-tensor",
        ),
    },
    "deeper/09_faults_that_hide_faults": {
        '"Using a target size that is different to the input size": a wrong shape that works': (
            "target-broadcast",
            "broadcast-loss",
            "target-shape",
        ),
        '"loss is NaN": where NaN gradients come from': ("nan-begins", "distribution-values"),
    },
    "deeper/09_errors_in_a_loop": {
        'What anomaly mode tells: "returned nan values in its 0th output"': ("nan-in-backward",),
    },
    "deeper/09_practical_checklist": {
        '"I froze the layer": does it stay as it was?': ("frozen-but-moving",),
        "`model.eval()` that was never undone": ("left-in-eval", "evaluated-in-train"),
        "Memory grows from step to step: what a log keeps": ("scalar-of-graph",),
    },
    "10_custom_functions": {
        "One node of your own": ("function-called", "function-not-static", "function-without-backward"),
        "Is it right? gradcheck": ("gradcheck-mismatch", "gradcheck-inputs"),
    },
    "deeper/10_custom_functions": {
        '"Legacy autograd function with non-static forward method is deprecated"': ("legacy-function",),
        "In place: mark_dirty": ("function-view-in-place", "mark-dirty"),
    },
    "deeper/10_what_pytorch_checks": {
        '"returned an incorrect number of gradients (expected 2, got 1)"': ("gradient-count",),
        '"returned an invalid gradient at index 0 - got [...] but expected shape compatible with [...]"': (
            "gradient-shape",
        ),
        "Why is my gradient None? And why does my result have no graph?": ("gradient-type", "backward-returns-nothing"),
        "Why save_for_backward, and not ctx.x = x?": ("save-for-backward", "function-saved-in-place"),
    },
    "deeper/10_double_backward_and_torch_func": {
        '"trying to differentiate twice a function that was marked with @once_differentiable"': (
            "once-differentiable",
        ),
        'torch.func: "it must override the setup_context staticmethod"': ("setup-context",),
    },
}


def _anchored(notebook: str, heading: str) -> str:
    return f"{notebook}#{anchor(heading)}"


_SECTIONS = {
    code: _anchored(notebook, heading)
    for notebook, headings in _TAUGHT.items()
    for heading, codes in headings.items()
    for code in codes
}
_HEADINGS = {
    _anchored(notebook, heading): (notebook, heading) for notebook, headings in _TAUGHT.items() for heading in headings
}


def codes() -> tuple[str, ...]:
    """Return every code that has a section."""
    return tuple(_SECTIONS)


def section(code: str) -> str:
    """Return where a code is taught, as "03_graph_freeing#Heading": the anchor is Jupyter's. KeyError without one."""
    return _SECTIONS[code]


def readable(section: str) -> str:
    """Return a section as a reader finds it: "lesson 03, 'Heading'", or "the deeper part of lesson 01, 'Heading'".

    What is no section of ours stays as it is.
    """
    if section not in _HEADINGS:
        return section
    notebook, heading = _HEADINGS[section]
    where = "the deeper part of lesson" if notebook.startswith("deeper/") else "lesson"
    return f"{where} {notebook.removeprefix('deeper/')[:2]}, '{heading.replace('`', '')}'"
