"""Settings of schedulers, optimizers, losses and layers that PyTorch refuses, with what to give instead."""

from __future__ import annotations

import ast
import re

from course_utils.explain.explanation import Explanation
from course_utils.explain.naming import receiver
from course_utils.explain.rules import Rule, told
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import walk
from course_utils.explain.writers import base_of, own_parts, writes_into


def _view_strides(s: Situation, m: re.Match[str]) -> Explanation:
    fix = "# .reshape(...) in place of .view(...): it copies where it must, and the gradient goes through both"
    if s.here is not None and isinstance(s.node, ast.Call) and _is_written_through(s.here, s.node):
        owner = receiver(s.node)
        shared = "the view then shares its memory, and what is written there is seen"
        fix = f"# before this line, as a copy of reshape() would hide the writes: {shared}\nx = x.contiguous()"
        if isinstance(owner, ast.Name):
            fix = f"{owner.id} = {owner.id}.contiguous()  # before this line: {shared}"
    explain = told(
        "view-strides", "the elements of this tensor do not lie in the order that view() needs",
        "view() shows the same memory in another shape. After a transpose its order is another, and a slice of columns "
        "leaves gaps.", fix)  # fmt: skip
    return explain(s, m)


def _is_written_through(call: Call, view: ast.Call) -> bool:
    """Say whether something writes into a view: in the same statement, or later by the name that it gets."""
    statement, scope = call.statement, call.scope
    if statement is None or scope is None:
        return False
    if any(writes_into(part, base_of(view)) for part in own_parts(statement)):
        return True
    made = statement.targets if isinstance(statement, ast.Assign) and statement.value is view else []
    names = [it.id for it in made if isinstance(it, ast.Name)]
    later = [it for it in walk(scope) if isinstance(it, ast.stmt) and it.lineno > statement.lineno]
    return any(writes_into(part, name) for it in later for part in own_parts(it) for name in names)


RULES = (
    Rule(ValueError, r"You must define either total_steps OR \(epochs AND steps_per_epoch\)", told(
        "scheduler-setting", "OneCycleLR was not told how many steps will come",
        "OneCycleLR plans one rise and one fall over the whole training, so it must know its length.",
        "torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs * len(loader))"),
        "optim/lr_scheduler.py"),
    Rule(ValueError, r"number of schedulers (\d+) and the number of milestones to be equal to (\d+)", told(
        "scheduler-setting", "{0} schedulers for {1} milestones",
        "A milestone is where one schedule ends and the next begins, so there is one less than schedulers.",
        "# milestones: one entry less than there are schedulers"), "optim/lr_scheduler.py"),
    Rule(ValueError, r"^(\w+) expects all schedulers to belong to the same optimizer", told(
        "scheduler-setting", "the schedulers of {0} belong to different optimizers",
        "{0} moves the learning rate of one optimizer. One of its schedulers was made for another.",
        "# make all schedulers of {0} with the same optimizer"), "optim/lr_scheduler.py"),
    Rule(ValueError, r"^(\w+) does not support `ReduceLROnPlateau`", told(
        "scheduler-setting", "{0} cannot hold a ReduceLROnPlateau",
        "ReduceLROnPlateau is told a loss at each step, and {0} calls step() without one.",
        "# call the ReduceLROnPlateau by itself, with the loss, and leave it out of {0}"), "optim/lr_scheduler.py"),
    Rule(Warning, r"To get the last learning rate computed by the scheduler, please use `get_last_lr\(\)`", told(
        "scheduler-setting", "get_lr() was asked, which is the scheduler's own step",
        "get_lr() works out the next rate from the present one: outside of step() its number may not be in use.",
        "scheduler.get_last_lr()  # the rates that are in use, one for each group")),
    Rule(ValueError, r"Nesterov momentum requires a momentum and zero dampening", told(
        "optimizer-setting", "nesterov=True was given without momentum",
        "Nesterov's step looks ahead along the momentum. Without momentum, or with dampening, there is no such step.",
        "torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)"), "optim/"),
    Rule(ValueError, r"LBFGS doesn't support per-parameter options", told(
        "optimizer-setting", "LBFGS was given groups of parameters",
        "LBFGS searches one direction for all parameters together, so it takes one list and no groups.",
        "torch.optim.LBFGS([p for group in groups for p in group['params']])"), "optim/lbfgs.py"),
    Rule(TypeError, r"^param_group must be a dict, but got <class '(\w+)'>", told(
        "optimizer-of-no-tensors", "add_param_group was given {0:a}",
        "A group is a dict: its parameters under 'params', and its own settings beside them.",
        "optimizer.add_param_group({{'params': parameters, 'lr': 1e-3}})"), "optim/optimizer.py"),
    Rule(TypeError, r"optimizer parameters need to be organized in ordered collections", told(
        "optimizer-of-no-tensors", "the optimizer was given a set of parameters",
        "The state of an optimizer is saved by the order of its parameters, and a set has no order.",
        "# a list in place of the set: list(model.parameters())"), "optim/optimizer.py"),
    Rule(ValueError, r"Attempting to unscale FP16 gradients", told(
        "scaler-stage", "the parameters themselves are float16",
        "A GradScaler is for float32 parameters whose forward runs in half precision. Gradients in float16 would lose, "
        "when they are divided by the scale, what scaling had saved.",
        "# leave the model in float32, without .half(), and run its forward under torch.autocast"),
        "amp/grad_scaler.py"),
    Rule(ValueError, r"^(\S+) is not a valid value for reduction", told(
        "loss-setting", "reduction='{0}' is none that a loss knows",
        "reduction says what becomes of the losses of all samples.",
        "reduction = 'mean'  # or 'sum', or 'none' for one loss for each sample"), "nn/"),
    Rule(RuntimeError, r"label_smoothing must be between 0\.0 and 1\.0\. Got: (\S+)", told(
        "loss-setting", "label_smoothing={0} is no share of 1",
        "label_smoothing is the share of the target that is spread over all classes: 0 for none of it.",
        "label_smoothing = 0.1")),
    Rule(RuntimeError, r"margin_ranking_loss : All input tensors should have same dimension", told(
        "target-shape", "the inputs and the target of margin_ranking_loss have unequal numbers of dimensions",
        "Each pair of numbers has one target, 1 or -1, that says which is to be larger.",
        "# a target of the shape of the inputs: target.view_as(input1)")),
    Rule(AssertionError, r"embed_dim must be divisible by num_heads", told(
        "layer-setting", "the heads of an attention do not divide its width",
        "Each head takes an equal share of embed_dim, so num_heads must divide it.",
        "# choose embed_dim as a multiple of num_heads: 64 for 8 heads"), "nn/modules/activation.py"),
    Rule(ValueError, r"num_channels \((\d+)\) must be divisible by num_groups \((\d+)\)", told(
        "layer-setting", "{1} groups do not divide {0} channels",
        "GroupNorm normalizes over groups of channels of one size.",
        "# a num_groups that divides {0}: 1 is one group of all"), "nn/modules/normalization.py"),
    Rule(ValueError, r"dropout probability has to be between 0 and 1, but got (\S+)", told(
        "layer-setting", "the probability of dropout was {0}",
        "p is the share of elements that dropout sets to 0, between 0 and 1.",
        "torch.nn.Dropout(p=0.5)"), "nn/"),
    Rule(ValueError, r"expected (.*?) input \(got (\d)D input\)", told(
        "input-dimensions", "a layer for {0} inputs was given one of {1} dimensions",
        "The 1d layers take (batch, channels) and (batch, channels, length), the 2d ones (batch, channels, height, "
        "width), the 3d ones a depth, too.",
        "# the layer for {1} dimensions, or an input with others: .flatten(1), .unsqueeze(...)"),
        "nn/modules/"),
    Rule(RuntimeError, r"size per channel: \((.*?)\)\. Kernel size: \((.*?)\)\. Kernel size can't be greater", told(
        "image-too-small", "a kernel of {1} does not fit into an input of {0}",
        "With its padding the input is {0}, smaller than the kernel of {1}. Most often layers before this one made it "
        "so small, or the image was so small already.",
        "# padding=... here, or less stride and pooling before; or larger images")),
    Rule(RuntimeError,
         r"Given input size: \((.*?)\)\. Calculated output size: \((.*?)\)\. Output size is too small", told(
        "image-too-small", "pooling an input of {0} leaves nothing",
        "Channels, height and width of the input are {0}; after pooling they would be {1}.",
        "# one pooling layer less, or larger images; nn.AdaptiveAvgPool2d(1) fits every size")),
    Rule(RuntimeError, r"view size is not compatible with input tensor's size and stride", _view_strides),
    Rule(RuntimeError, r"`lengths` array must be sorted in decreasing order", told(
        "loss-setting", "the sequences of a packed batch are not sorted by length",
        "By default pack_padded_sequence expects the longest sequence first.",
        "# pack_padded_sequence(..., enforce_sorted=False) sorts by itself, and undoes it"), "nn/utils/rnn.py"),
)  # fmt: skip
