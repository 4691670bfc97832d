"""Messages that name their cause: settings that are refused, and what torch.func and Functions take and return."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

from tests.explain.provoked import case


def optimizer(**settings):
    return torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1, **settings)


@case("scheduler-setting", "OneCycleLR was not told")
def one_cycle_without_a_length():
    lr_scheduler.OneCycleLR(optimizer(), max_lr=0.1)  # raised here


@case("scheduler-setting", "2 schedulers for 2 milestones")
def as_many_milestones_as_schedulers():
    it = optimizer()
    steps = [lr_scheduler.StepLR(it, 1), lr_scheduler.StepLR(it, 2)]
    lr_scheduler.SequentialLR(it, steps, milestones=[1, 2])  # raised here


@case("scheduler-setting", "SequentialLR belong to different optimizers")
def schedulers_of_two_optimizers():
    it = optimizer()
    steps = [lr_scheduler.StepLR(it, 1), lr_scheduler.StepLR(optimizer(), 2)]
    lr_scheduler.SequentialLR(it, steps, milestones=[1])  # raised here


@case("scheduler-setting", "ChainedScheduler cannot hold a ReduceLROnPlateau")
def plateau_in_a_chain():
    it = optimizer()
    lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(it), lr_scheduler.StepLR(it, 1)])  # raised here


@case("scheduler-setting", "get_last_lr()", warns=True)
def rate_asked_of_the_step():
    lr_scheduler.StepLR(optimizer(), 1).get_lr()


@case("optimizer-setting", "nesterov=True was given without momentum")
def nesterov_without_momentum():
    torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1, nesterov=True)  # raised here


@case("optimizer-setting", "LBFGS was given groups")
def groups_for_lbfgs():
    groups = [{"params": [nn.Parameter(torch.ones(1))]}, {"params": [nn.Parameter(torch.ones(1))]}]
    torch.optim.LBFGS(groups)  # raised here


@case("optimizer-of-no-tensors", "add_param_group was given a list")
def list_for_a_group():
    optimizer().add_param_group([nn.Parameter(torch.ones(1))])  # raised here


@case("optimizer-of-no-tensors", "a set has no order")
def set_of_parameters():
    torch.optim.SGD([{"params": {nn.Parameter(torch.ones(1))}}], lr=0.1)  # raised here


@case("optimizer-of-no-tensors", "net.parameters()")
def module_for_clipping():
    net = nn.Linear(2, 1)
    nn.utils.clip_grad_norm_(net, 1.0)  # raised here


@case("scaler-stage", "the parameters themselves are float16")
def scaler_for_a_half_model():
    p, scaler = nn.Parameter(torch.ones(1).half()), torch.amp.GradScaler("cpu")
    it = torch.optim.SGD([p], lr=0.1)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(it)  # raised here


@case("loss-setting", "reduction='average'")
def reduction_by_another_name():
    F.mse_loss(torch.ones(3), torch.ones(3), reduction="average")  # raised here


@case("loss-setting", "label_smoothing=2")
def too_much_smoothing():
    F.cross_entropy(torch.ones(4, 3), torch.zeros(4).long(), label_smoothing=2.0)  # raised here


@case("target-shape", "margin_ranking_loss")
def ranking_of_unequal_shapes():
    F.margin_ranking_loss(torch.ones(3), torch.ones(3), torch.ones(2, 3))  # raised here


@case("weight-shape", "pos_weight has shape (2,)", "end in 3")
def weights_for_other_classes():
    F.binary_cross_entropy_with_logits(torch.ones(4, 3), torch.ones(4, 3), pos_weight=torch.ones(2))  # raised here


@case("layer-setting", "num_heads must divide it")
def heads_that_do_not_divide():
    nn.MultiheadAttention(5, 2)  # raised here


@case("layer-setting", "3 groups do not divide 4 channels")
def groups_that_do_not_divide():
    nn.GroupNorm(3, 4)  # raised here


@case("layer-setting", "the probability of dropout was 1.5")
def dropout_of_more_than_all():
    nn.Dropout(1.5)  # raised here


@case("input-dimensions", "2D or 3D inputs was given one of 4 dimensions")
def images_for_a_1d_layer():
    nn.BatchNorm1d(3)(torch.ones(2, 3, 4, 5))  # raised here


@case("image-too-small", "a kernel of 5 x 5 does not fit into an input of 3 x 3")
def kernel_larger_than_the_image():
    nn.Conv2d(1, 1, 5)(torch.ones(1, 1, 3, 3))  # raised here


@case("image-too-small", "leaves nothing")
def pooling_of_one_pixel():
    F.max_pool2d(torch.ones(1, 1, 1, 1), 2)  # raised here


@case("view-strides", ".reshape(...)")
def view_of_a_transpose():
    torch.ones(4, 3, requires_grad=True).t().view(-1)  # raised here


@case("view-strides", "z = z.contiguous()  # before this line")
def view_of_a_transpose_that_is_written_through():
    z = torch.ones(4, 3).t()
    flat = z.view(-1)  # raised here
    for place in range(3):
        flat[place] += 1


@case("view-strides", "z = z.contiguous()  # before this line")
def view_that_is_written_to_at_once():
    z = torch.ones(4, 3).t()
    z.view(-1)[0] += 1  # raised here


@case("view-strides", "x = x.contiguous()")
def view_of_what_has_no_name():
    flat = torch.ones(4, 3).t().view(-1)  # raised here
    flat.zero_()


@case("loss-setting", "enforce_sorted=False")
def lengths_that_are_not_sorted():
    nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [1, 3])  # raised here


@case("seed-count", "1 gradients to start from, for 2 outputs")
def one_seed_for_two_outputs():
    w = torch.ones(2, requires_grad=True)
    torch.autograd.grad([w.sum(), w.prod()], [w], grad_outputs=[torch.ones(())])  # raised here


@case("seed-count", "backward(inputs=[])")
def no_inputs():
    w = torch.ones(2, requires_grad=True)
    w.sum().backward(inputs=[])  # raised here


@case("input-without-grad", "`v` does not require a gradient", "v.requires_grad_()")
def inputs_without_grad():
    w, v = torch.ones(2, requires_grad=True), torch.ones(2)
    (w * v).sum().backward(inputs=[v])  # raised here


@case("view-of-several-in-place", "detach_() was called on a view")
def view_detached_in_place():
    part = (torch.ones(4, requires_grad=True) * 2)[:2]
    part.detach_()  # raised here


@case("transform-outputs", "given to hessian does not return one number")
def hessian_of_several():
    torch.autograd.functional.hessian(lambda x: x**2, torch.ones(2))  # raised here


@case("seed-shape", "the vector has shape [3], and [2] is needed")
def vector_of_another_shape():
    torch.autograd.functional.hvp(lambda x: (x**2).sum(), torch.ones(2), torch.ones(3))  # raised here


@case("transform-inputs", "was given a float to differentiate")
def gradient_at_a_number():
    torch.func.grad(lambda x: x * 2)(3.0)  # raised here


@case("transform-outputs", "has_aux=True")
def gradient_of_a_pair():
    torch.func.grad(lambda x: (x.sum(), x))(torch.ones(3))  # raised here


@case("transform-outputs", "returned a NoneType, not a tensor")
def gradient_of_nothing():
    torch.func.grad(lambda x: None)(torch.ones(3))  # raised here


@case("transform-inputs", "argnums=1")
def argument_that_was_not_given():
    torch.func.grad(lambda x: x.sum(), argnums=1)(torch.ones(3))  # raised here


@case("transform-inputs", "in_dims=2 for an input of 2 dimensions")
def dimension_that_is_not_there():
    torch.vmap(lambda a: a, in_dims=2)(torch.ones(2, 3))  # raised here


@case("transform-inputs", "vmap was to go over a float")
def number_for_vmap():
    torch.vmap(lambda a, b: a * b)(torch.ones(2), 3.0)  # raised here


@case("transform-inputs", "in_dims does not match")
def too_few_dimensions():
    torch.vmap(lambda a, b: a + b, in_dims=(0,))(torch.ones(2), torch.ones(2))  # raised here


@case("transform-outputs", "in vmap returned a float")
def number_from_vmap():
    torch.vmap(lambda a: 1.0)(torch.ones(2))  # raised here


@case("transform-inputs", "primals of jvp must be a tuple")
def primals_that_are_no_tuple():
    torch.func.jvp(lambda x: x**2, torch.ones(3), torch.ones(3))  # raised here


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dirty, keep):
        x.mul_(2)
        ctx.mark_dirty(x if dirty is None else dirty)
        return keep(x)

    @staticmethod
    def backward(ctx, g, *others):
        return 2 * g, None, None


@case("mark-dirty", "forward wrote into an input and did not return it")
def dirty_input_that_is_not_returned():
    Doubled.apply(torch.ones(2, requires_grad=True) * 1, None, lambda x: x * 1)  # raised here


@case("mark-dirty", "something that is no tensor")
def number_marked_dirty():
    Doubled.apply(torch.ones(2, requires_grad=True) * 1, 3, lambda x: x)  # raised here


@case("mark-dirty", "forward wrote into a view")
def dirty_view_beside_another_output():
    Doubled.apply((torch.ones(4, requires_grad=True) * 1)[:2], None, lambda x: (x, x + 1))  # raised here


@case("half-and-double", "float16 meets float64", "b = b.to(a.dtype)")
def half_times_double():
    a, b = torch.ones(2, 2).half(), torch.ones(2, 2).double()
    a @ b  # raised here


@case("integers-updated", "x = x / 2")
def integers_halved_in_place():
    x = torch.ones(3, dtype=torch.long)
    x /= 2  # raised here
