"""Kinds of mistakes that the third strangers made: losses and products of several dtypes, and what lies on meta."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.explain.provoked import case


@case("target-dtype", "`labels` holds integers (int64)", "labels = labels.float()")
def integers_for_bce():
    p, labels = torch.rand(3, 1, requires_grad=True), torch.ones(3, 1, dtype=torch.long)
    nn.BCELoss()(p, labels)  # raised here


@case("target-dtype", "`mask` holds booleans (bool)")
def booleans_for_bce():
    p, mask = torch.rand(3), torch.rand(3) > 0.5
    F.binary_cross_entropy(p, mask)  # raised here


@case("target-dtype", "`aims` is float64", "aims = aims.to(p.dtype)")
def float64_for_bce():
    p, aims = torch.rand(3), torch.rand(3, dtype=torch.float64)
    F.binary_cross_entropy(p, aims)  # raised here


@case("target-dtype", "`huber_loss`", "`steps` holds integers", "steps = steps.float()")
def integers_for_huber_that_backward_refuses():
    y, steps = torch.rand(3, requires_grad=True), torch.arange(3)
    loss = F.huber_loss(y, steps)
    loss.backward()  # raised here


@case("target-dtype", "`kl_div`", "`counts` holds integers")
def counts_for_a_divergence():
    y, counts = torch.rand(3).log(), torch.arange(3)
    F.kl_div(y, counts, reduction="sum")  # raised here


@case("dtype-mismatch", "`bias` is float32, `b` float64", "b = b.to(bias.dtype)")
def addmm_by_hand():
    bias, a, b = torch.ones(2, 2), torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64)
    torch.addmm(bias, a, b)  # raised here


@case("dtype-mismatch", "bias = bias.to(a.dtype)")
def a_bias_of_another_dtype():
    bias, a, w = torch.ones(2, dtype=torch.float64), torch.ones(4, 3), torch.ones(2, 3)
    F.linear(a, w, bias)  # raised here


@case("dtype-mismatch", "c = c.to(a.dtype)")
def einsum_of_two_dtypes():
    a, c = torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64)
    torch.einsum("ij,jk->ik", a, c)  # raised here


@case("dtype-mismatch", "float32 meets float64")
def bmm_of_two_dtypes():
    a, c = torch.ones(1, 2, 3), torch.ones(1, 3, 2, dtype=torch.float64)
    torch.bmm(a, c)  # raised here


@case("dtype-mismatch", "start = start.to(a.dtype)")
def baddbmm_with_another_start():
    start, a, b = torch.zeros(1, 2, 2, dtype=torch.float64), torch.ones(1, 2, 3), torch.ones(1, 3, 2)
    torch.baddbmm(start, a, b)  # raised here


@case("dtype-mismatch", "v = v.to(a.dtype)")
def matrix_and_vector():
    a, v = torch.ones(2, 3), torch.ones(3, dtype=torch.float64)
    a @ v  # raised here


@case("dtype-mismatch", "count = count.to(a.dtype)")
def integers_on_the_left():
    count, a = torch.ones(2, 3, dtype=torch.long), torch.ones(3, 2)
    torch.mm(count, a)  # raised here


@case("dtype-mismatch", certain=False)
def contracted_without_names():
    a = torch.ones(2, 3)
    torch.tensordot(a, a.T.double(), 1)  # raised here


@case("dtype-mismatch", "c = c.to(a.dtype)")
def a_chain_of_two_dtypes():
    a, c = torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64)
    torch.linalg.multi_dot([a, c])  # raised here


@case("dtype-mismatch", "value = value.to(q.dtype)")
def attention_of_two_dtypes():
    q, value = torch.ones(1, 2, 3), torch.ones(1, 2, 3, dtype=torch.float64)
    F.scaled_dot_product_attention(q, q, value)  # raised here


@case("dtype-mismatch", "b = b.to(a.dtype)")
def solve_of_two_dtypes():
    a, b = torch.eye(3), torch.ones(3, dtype=torch.float64)
    torch.linalg.solve(a, b)  # raised here


@case("dtype-mismatch", "b = b.to(a.dtype)")
def bilinear_by_hand():
    w, a, b = torch.ones(2, 3, 3), torch.ones(4, 3), torch.ones(4, 3, dtype=torch.float64)
    F.bilinear(a, b, w)  # raised here


@case("dtype-mismatch", "weight is float32, bias is float64")
def a_layer_of_two_dtypes():
    layer = nn.Linear(3, 2)
    layer.bias.data = layer.bias.data.double()
    layer(torch.ones(4, 3))  # raised here


@case("saved-hook", "numpy.ndarray", "torch.from_numpy(packed)")
def unpack_that_returns_an_array():
    w = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), lambda kept: kept):  # hooks set here
        loss = w.exp().sum()
    loss.backward()  # raised here


@case("saved-hook", "returned None", "have a return")
def unpack_that_returns_nothing():
    def unpack(kept):
        kept.float()

    w = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), unpack):  # hooks set here
        loss = w.exp().sum()
    loss.backward()  # raised here


@case("saved-hook", "writes in place")
def pack_that_writes():
    w = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda kept: kept):
        w.exp()  # raised here


@case("saved-hook", "pair of functions")
def one_hook_of_two():
    torch.autograd.graph.saved_tensors_hooks(lambda t: t)  # raised here


@case("saved-hook", "pair of functions")
def hooks_that_are_no_functions():
    hooks = torch.autograd.graph.saved_tensors_hooks("pack", "unpack")
    with hooks:  # raised here
        torch.ones(2)


@case("saved-hook", "pair of functions")
def one_hook_for_a_saved_tensor():
    y = torch.ones(2, requires_grad=True).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t)  # raised here


@case("saved-hook", "already")
def hooks_for_a_saved_tensor_twice():
    y = torch.ones(2, requires_grad=True).exp()  # what is saved lives only as long as its node
    for _ in range(2):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda kept: kept)  # raised here


@case("saved-hook", "torch.func")
def hooks_inside_a_transform():
    def f(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda kept: kept):  # raised here
            return x.exp().sum()

    torch.func.grad(f)(torch.ones(2))


@case("meta-tensor", "`net` was built on the device meta", "net.to_empty(device='cpu')")
def a_model_out_of_meta():
    with torch.device("meta"):  # meta here
        net = nn.Linear(2, 1)
    net.to("cpu")  # raised here


@case("meta-tensor", "`net`", "net.to_empty(device='cpu')")
def a_model_by_cpu():
    net = nn.Linear(2, 1, device="meta")  # meta here
    net.cpu()  # raised here


@case("meta-tensor", "`plan` is on meta", "torch.zeros_like(plan, device='cpu')")
def a_tensor_out_of_meta():
    plan = torch.ones(2, device="meta")  # meta here
    plan.to("cpu")  # raised here


@case("meta-tensor", "`plan` is on meta")
def a_copy_of_what_is_on_meta():
    plan = torch.ones(2, device="meta")  # meta here
    torch.ones(2).copy_(plan)  # raised here


@case("meta-tensor", "`size` is on meta: no number to read")
def a_number_on_meta():
    size = torch.ones((), device="meta")  # meta here
    size.item()  # raised here


@case("meta-tensor", "`plan` is on meta")
def an_array_of_meta():
    plan = torch.ones(2, device="meta")  # meta here
    plan.numpy()  # raised here


@case("meta-tensor", "no numbers to load")
def a_state_on_meta():
    empty = nn.Linear(2, 1, device="meta").state_dict()  # meta here
    nn.Linear(2, 1).load_state_dict(empty)  # raised here


@case("meta-tensor", "lost", "assign=True", warns=True)
def a_state_into_meta():
    net = nn.Linear(2, 1, device="meta")
    net.load_state_dict(nn.Linear(2, 1).state_dict())


@case("grad-is-none", "`loss` does not depend on it", "(`net['spare'].weight`)")
def a_layer_that_the_loss_does_not_use():
    net = {"used": nn.Linear(2, 1), "spare": nn.Linear(2, 1)}
    loss = net["used"](torch.ones(1, 2)).sum()
    loss.backward()  # backward here
    p = net["spare"].weight
    return p.grad.norm()  # raised here


@case("grad-is-none", "requires_grad of `w` is False")
def a_norm_of_what_is_frozen():
    w, v = torch.ones(2), torch.ones(2, requires_grad=True)
    loss = (w * v).sum()
    loss.backward()
    return w.grad.norm()  # raised here


@case("grad-is-none", "not a leaf", "h.retain_grad()")
def a_norm_in_the_middle():
    w = torch.ones(2, requires_grad=True)
    h = w.exp()
    h.sum().backward()
    return h.grad.norm()  # raised here


class Leaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        return x * slope

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out, None


@case("grad-is-none", "`Leaky`", "returned None", certain=False)
def a_function_that_returns_none():
    w, slope = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    loss = Leaky.apply(w, slope).sum()
    loss.backward()  # backward here
    return slope.grad.norm()  # raised here


@case("grad-is-none", "No leaf has a gradient", certain=False)
def a_norm_after_zero_grad():
    layer = nn.Linear(2, 1)
    loss = layer(torch.ones(1, 2)).sum()
    loss.backward()
    layer.zero_grad()
    return layer.weight.grad.norm()  # raised here


@case("grad-is-none", "Other leaves have gradients", certain=False)
def a_gradient_put_to_none():
    layer = nn.Linear(2, 1)
    loss = layer(torch.ones(1, 2)).sum()
    loss.backward()
    layer.weight.grad = None
    g = layer.weight.grad  # read here
    return g.norm()  # raised here


@case("grad-is-none", "writes none into `.grad`", certain=False)
def gradients_that_were_only_returned():
    w = torch.ones(2, requires_grad=True)
    torch.autograd.grad(w.exp().sum(), w)  # returned here
    return w.grad.norm()  # raised here


@case("not-in-graph", "gave the name a new one", "t = t.clone()  # move it before line", certain=False)
def a_clone_after_the_use():
    x = torch.ones(2, requires_grad=True)
    t = torch.ones(2, requires_grad=True)
    both = torch.cat([x, t])  # used here
    t = t.clone()  # replaced here
    u = both.exp()
    torch.autograd.grad(u.sum(), [x, t])  # raised here


@case("not-in-graph", "No recorded path leads", certain=False)
def a_clone_that_was_used_and_is_not_to_blame():
    t = torch.ones(2, requires_grad=True)
    before = t.exp()
    t = t.clone()
    after = t.exp()
    print(after.sum())
    torch.autograd.grad(before.sum(), t)  # raised here
