"""`memory`: exact bytes on models small enough to count by hand, and that nothing of the run is kept or changed."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

from course_utils import memory
from course_utils.graph import watch
from course_utils.graph.alive import OwnedMemory
from course_utils.graph.timeline import Timeline

PARAMETERS = 4 * (20 * 30 + 30 + 30 * 5 + 5)


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(10, 20)


@pytest.fixture(autouse=True)
def nothing_stays():
    before = len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)
    yield
    assert (len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)) == before
    assert not _get_current_dispatch_mode_stack()


def named(timeline: Timeline, moment: str) -> dict[str, int]:
    """Return the owners that have bytes at a moment."""
    pairs = zip(timeline.owners, getattr(timeline, moment).bytes, strict=True)
    return {name: size for name, size in pairs if size}


def test_a_step_of_a_small_model(model, x):
    timeline = memory(lambda: model(x).pow(2).mean().backward(), model)
    # Saved are the ReLU's result (10 x 30) and the last layer's (10 x 5, by pow). The loss and the seed are numbers.
    assert named(timeline, "forward") == {"1": 1200, "2": 200, "outside": 8}
    assert named(timeline, "end") == {"gradients": PARAMETERS}
    assert timeline.owners == ("0", "1", "2", "outside", "gradients")
    # At the peak the gradients of all parameters are there, and still that of the first layer's result (10 x 30).
    assert named(timeline, "peak") == {"outside": 8, "gradients": PARAMETERS + 1200}
    assert timeline.peak.in_backward
    assert timeline.peak.total == max(sample.total for sample in timeline.samples)


def test_the_text(model, x):
    assert str(memory(lambda: model(x), model)).splitlines() == [
        "bytes alive  when forward ended  at the peak  at the end",
        "0                             0        1,200           0",
        "1                         1,200        1,200           0",
        "2                           200            0           0",
        "total                     1,400        2,400           0",
        "Timeline of 6 operations: the peak of 2,400 bytes came after operation 3, in a forward pass; "
        "0 bytes are left at the end",
    ]


def test_the_text_of_large_sizes_has_a_unit():
    lines = str(memory(lambda: torch.ones(1_000_000))).splitlines()
    assert lines[0].startswith("kB alive")
    assert lines[1].split() == ["outside", "4,000.0", "4,000.0", "0.0"]
    assert str(memory(lambda: torch.ones(3_000_000))).startswith("MB alive")


def test_the_text_is_the_same_on_every_run(model, x):
    def step():
        model(x).pow(2).mean().backward()
        model.zero_grad()

    assert str(memory(step, model)) == str(memory(step, model))


def test_nothing_made():
    timeline = memory(lambda: None)
    assert repr(timeline) == "Timeline of 0 operations: no tensor was made"
    assert (timeline.owners, timeline.peak.total, timeline.end.total) == ((), 0, 0)


def test_views_and_operations_in_place_add_nothing(x):
    def step():
        base = x * 2
        views = base.view(20, 10), base[3:], base.t(), *base.split(2)
        base.add_(1).mul_(2)
        torch.mul(base, 2, out=base)
        return views

    assert memory(step).peak.total == x.nbytes


def test_what_existed_before_is_not_counted(model, x):
    out = torch.empty(3)

    def step():
        torch.add(torch.ones(3), 1, out=out)
        x.add_(1)
        return x.view(-1), model[0].weight.t(), x.detach()

    timeline = memory(step, model)
    assert named(timeline, "peak") == {"outside": 12}


def test_memory_that_grows_is_counted_anew():
    def step():
        out = torch.empty(0)
        torch.add(torch.ones(5), 1, out=out)
        return out

    assert memory(step).forward.total == 20


def test_tensors_made_of_numbers_count():
    assert memory(lambda: torch.tensor([1.0, 2.0, 3.0])).forward.total == 12


def test_without_grad_little_is_kept(model, x):
    def forward():
        with torch.no_grad():
            return model(x)

    timeline = memory(forward, model)
    assert named(timeline, "forward") == {"2": 200}
    assert timeline.passes == ()


def test_what_somebody_holds_is_left_at_the_end(model, x):
    held = []
    assert named(memory(lambda: held.append(model(x)), model), "end") == {"1": 1200, "2": 200}
    assert named(memory(lambda: model(x), model), "end") == {}


def test_hoarded_losses_keep_their_graphs(model, x):
    losses = []

    def train(keep):
        for _ in range(5):
            losses.append(keep(model(x).pow(2).mean()))

    graphs = memory(lambda: train(lambda loss: loss), model).end.total
    assert graphs == 5 * (1200 + 200 + 4)
    losses.clear()
    assert memory(lambda: train(torch.Tensor.item), model).end.total == 0


def test_a_retained_graph_is_still_there_after_the_pass(model, x):
    def step(retain):
        loss = model(x).pow(2).mean()
        loss.backward(retain_graph=retain)
        loss.detach()  # a moment after the pass
        return loss

    retained, freed = (memory(lambda retain=retain: step(retain), model) for retain in (True, False))
    after = [dict(zip(run.owners, run.samples[-2].bytes, strict=True)) for run in (retained, freed)]
    assert [moment["1"] + moment["2"] for moment in after] == [1400, 0]
    assert named(retained, "end") == {"gradients": PARAMETERS}
    assert named(freed, "end") == {}  # the second pass added to the gradients of the first


class Deep(nn.Module):
    """Six layers, checkpointed one by one or not."""

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(50, 50), nn.Tanh(), nn.Tanh()) for _ in range(6))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) if self.reentrant is None else checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_lowers_the_peak(reentrant):
    def run(model):
        x = torch.rand(200, 50, requires_grad=True)
        return memory(lambda: model(x).sum().backward(), model)

    plain, frugal = run(Deep()), run(Deep(reentrant))
    assert named(plain, "forward")["layers.0.1"] == 40_000
    assert "layers.0.1" not in named(frugal, "forward")
    assert frugal.peak.total < 0.75 * plain.peak.total
    assert frugal.end.total == plain.end.total
    assert len(frugal.passes) == 1
    # What runs again in the backward pass belongs to its module.
    place = frugal.owners.index("layers.0.1")
    again = [sample.bytes[place] for sample in frugal.samples if sample.operation > frugal.passes[0]]
    assert max(again) == 40_000


def test_owners_are_the_innermost_parts(x):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(20, 2), nn.Tanh())

        def forward(self, x):
            return self.block(x) * 3

    model = Own()
    timeline = memory(lambda: model(x).exp(), model)
    assert timeline.owners == ("block.0", "block.1", "the model itself", "outside")
    assert named(timeline, "forward") == {"block.1": 80, "outside": 80}  # what is saved; a factor of 3 needs nothing
    assert timeline.merged(1).owners == ("block", "the model itself", "outside")
    assert named(timeline.merged(1), "peak") == {"block": 80, "the model itself": 80, "outside": 80}


def test_a_shared_module_has_one_name(x):
    shared = nn.Linear(20, 20)
    model = nn.ModuleDict({"first": shared, "second": shared, "act": nn.Tanh()})

    def forward():
        return model["act"](model["second"](model["act"](model["first"](x))))

    timeline = memory(forward, model)
    assert timeline.owners == ("first", "act")
    assert named(timeline, "forward") == {"act": 1600}


def test_a_module_that_calls_itself(x):
    class Twice(nn.Module):
        def forward(self, x, again=True):
            return self(x.exp(), again=False).exp() if again else x.exp()

    model = nn.Sequential(Twice())
    x.requires_grad_()
    assert named(memory(lambda: model(x), model), "forward") == {"0": 3 * x.nbytes}


def test_a_backward_pass_within_forward_is_a_backward_pass(x):
    class Inner(nn.Module):
        def forward(self, x):
            x = x.detach().requires_grad_()
            (grad,) = torch.autograd.grad(x.exp().sum(), x)
            return grad

    model = nn.Sequential(Inner())
    timeline = memory(lambda: model(x), model)
    assert named(timeline, "forward") == {"0": x.nbytes + 8}  # the moment at which the pass began, with loss and seed
    assert max(sample.bytes[timeline.owners.index("gradients")] for sample in timeline.samples) == x.nbytes


def test_each_pass_has_its_start(model, x):
    def steps():
        for _ in range(3):
            model.zero_grad()
            model(x).pow(2).mean().backward()

    timeline = memory(steps, model)
    assert len(timeline.passes) == 3
    kinds = {sample.operation: sample.in_backward for sample in timeline.samples}
    assert all(not kinds[start] and kinds[start + 1] for start in timeline.passes)


def test_an_embedding_with_sparse_gradients():
    model = nn.Embedding(50, 4, sparse=True)
    timeline = memory(lambda: model(torch.tensor([1, 2, 3])).sum().backward(), model)
    assert named(timeline, "end") == {"gradients": 3 * 4 * 4 + 3 * 8}  # three rows, and their numbers


def test_a_long_run_stays_small_and_keeps_its_peak(monkeypatch):
    monkeypatch.setattr(watch, "MAX_SAMPLES", 20)

    def run():
        for number in range(300):
            torch.empty(777 if number == 123 else number % 7)

    timeline = memory(run)
    assert timeline.operations == 300
    assert len(timeline.samples) <= 21
    assert (timeline.peak.total, timeline.peak.operation) == (4 * 777, 124)
    assert timeline.peak in timeline.samples
    assert timeline.samples[-1] == timeline.end
    operations = [sample.operation for sample in timeline.samples]
    assert operations == sorted(operations)


def test_the_run_is_that_of_a_plain_one(model, x):
    model(x).pow(2).mean().backward()
    plain = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    memory(lambda: model(x).pow(2).mean().backward(), model)
    assert all(torch.equal(a, b.grad) for a, b in zip(plain, model.parameters(), strict=True))


def test_hooks_of_others_change_nothing_of_what_runs(x):
    layer = nn.TransformerEncoderLayer(20, 2, 8, batch_first=True).eval()
    seen = []
    with torch.no_grad():
        memory(lambda: seen.append(any(m._forward_hooks or m._forward_pre_hooks for m in layer.modules())), layer)
        timeline = memory(lambda: layer(x[None]), layer)
    assert seen == [False]
    assert timeline.owners == ("the model itself",)  # the fused operation that PyTorch takes without hooks


def test_nothing_is_kept_alive(model, x):
    class Result:
        pass

    results = []

    def step():
        result = Result()
        result.value = model(x)
        results.append(weakref.ref(result))
        return result

    gc.disable()
    try:
        timeline = memory(step, model)
        assert results[0]() is None
        held = OwnedMemory()
        held.add(model(x).untyped_storage(), "x")
        assert held.alive == {"x": 0}
        assert isinstance(timeline, Timeline)
    finally:
        gc.enable()


def test_an_error_of_the_function_comes_through(model, x):
    class Breaks(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    model.append(Breaks())
    with pytest.raises(KeyError, match="mine"):
        memory(lambda: model(x), model)

    def survives():
        try:
            model(x)
        except KeyError:
            return torch.ones(2)

    assert named(memory(survives, model), "forward") == {"outside": 8}


def test_one_in_another(model, x):
    inner = []
    outer = memory(lambda: inner.append(memory(lambda: model(x), model)), model)
    assert outer.peak == inner[0].peak


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((None,), r"memory\(\) got NoneType, not a function: pass the function itself, as in memory\(step\)"),
        ((torch.ones(1),), "memory\\(\\) got Tensor, not a function"),
        ((lambda: 0, torch.ones(1)), "memory\\(\\) got model=Tensor; model is the torch.nn.Module"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(TypeError, match=words):
        memory(*arguments)


def test_passes_that_follow_each_other_without_a_forward_between_are_told_apart():
    x = torch.ones(3, requires_grad=True)
    a, b = x.exp(), x.sin()
    one = torch.ones(3)
    assert len(memory(lambda: (a.backward(one), b.backward(one))).passes) == 2
