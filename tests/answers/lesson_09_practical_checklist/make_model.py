"""Right and wrong answers to `make_model`."""

from itertools import pairwise

import torch
from torch import nn

from tests.answers.said import said


class Net(nn.Module):
    def __init__(self, sizes, mean):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.scale = nn.Parameter(torch.ones(sizes[-1]))
        self.register_buffer("mean", mean)

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.scale * self.layers[-1](x)


class ListNet(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


class WithoutScale(Net):
    """Has no scale at all."""

    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.scale

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


class FixedScale(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.scale
        self.scale = torch.ones(sizes[-1], requires_grad=True)


class BufferScale(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.scale
        self.register_buffer("scale", torch.ones(sizes[-1]))


class TrainedMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.mean = nn.Parameter(mean)


class FrozenMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.mean = nn.Parameter(mean, requires_grad=False)


class Subtracting(Net):
    def forward(self, x):
        x -= self.mean
        return super().forward(x + self.mean)


class LooseMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.mean = mean


class PassingMean(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        del self.mean
        self.register_buffer("mean", mean, persistent=False)


class ReluLast(Net):
    def forward(self, x):
        x = x - self.mean
        for layer in self.layers:
            x = layer(x).relu()
        return self.scale * x


class ScaleOfOneRow(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        self.scale = nn.Parameter(torch.ones(1, sizes[-1]))


class ConstantStart(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        for layer in self.layers:
            nn.init.zeros_(layer.weight)


class Broken(LooseMean):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        layers = list(self.layers)
        del self.layers, self.scale
        self.layers = layers
        self.scale = torch.ones(sizes[-1], requires_grad=True)


class ScaleInside(Net):
    """The scale does not multiply the last bias. While it is 1, nothing shows."""

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.scale * (x @ self.layers[-1].weight.T) + self.layers[-1].bias


class MeanInTraining(Net):
    def forward(self, x):
        return super().forward(x if self.training else x + self.mean)


class Rounding(Net):
    """Subtracts in float32, whatever the model computes in."""

    def forward(self, x):
        return super().forward((x.float() - self.mean.float()).to(x.dtype) + self.mean)


class Narrow(Net):
    """Subtracts in the model's own dtype, and goes through float32 after it."""

    def forward(self, x):
        return super().forward((x - self.mean).float().to(x.dtype) + self.mean)


class Remembering(Net):
    """Keeps the mean of its first run."""

    def forward(self, x):
        self.first = getattr(self, "first", self.mean.clone())
        return super().forward(x - self.first.to(x.dtype) + self.mean)


class ScaleOfAnotherStart(Net):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        self.scale.data.uniform_(0.5, 1.5)


class ScaleCut(Net):
    """The scale multiplies, and nothing tells it where to go."""

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.scale.detach() * self.layers[-1](x)


class Single(Net):
    """Makes float32 of what goes into the layers."""

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers[:-1]:
            x = layer(x.float()).relu()
        return self.scale * self.layers[-1](x.float())


KEPT = {}


def one_model_for_all(sizes, mean):
    return KEPT.setdefault(tuple(sizes), Net(sizes, mean))


UNPAIRED = {}


def models_in_pairs(sizes, mean):
    """Every second model of these sizes has a bias of the one before."""
    model, before = Net(sizes, mean), UNPAIRED.pop(tuple(sizes), None)
    if before is None:
        UNPAIRED[tuple(sizes)] = model
    else:
        model.layers[-1].bias = before.layers[-1].bias
    return model


class Shift(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.register_buffer("by", mean)

    def forward(self, x):
        return x - self.by


class Stretch(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.factor


def model_of_parts(sizes, mean):
    parts = [Shift(mean)]
    for a, b in pairwise(sizes):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1], Stretch(sizes[-1]))


class Named(nn.Module):
    """A list, and every layer registered by hand besides."""

    def __init__(self, sizes, mean):
        super().__init__()
        self.layers = []
        for number, (a, b) in enumerate(pairwise(sizes)):
            self.layers.append(nn.Linear(a, b))
            self.add_module(f"layer{number}", self.layers[-1])
        self.register_parameter("scale", nn.Parameter(torch.ones(sizes[-1])))
        self.mean = nn.Buffer(mean)

    def forward(self, x):
        x = x - self.mean
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number < len(self.layers) - 1:
                x = torch.relu(x)
        return x * self.scale


class SharedBySize(Net):
    """Layers of one size are one layer."""

    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        known = {}
        self.layers = nn.ModuleList(known.setdefault(layer.weight.shape, layer) for layer in self.layers)


class ListAndTrainedMean(TrainedMean):
    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


class ListAndOneScale(ListNet):
    """One scale for all outputs."""

    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        self.scale = nn.Parameter(torch.ones(1))


class MeanOfOneRow(FixedScale):
    """Its mean is a buffer of two dimensions."""

    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        self.mean = mean[None]


class InATuple(Net):
    def forward(self, x):
        return (super().forward(x),)


class Growing(Net):
    """Each model has a buffer of another name."""

    made = 0

    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        Growing.made += 1
        self.register_buffer(f"number_{Growing.made}", torch.zeros(()))


class GivenMean(Net):
    """Its mean is a buffer, and forward subtracts the tensor that was given."""

    def __init__(self, sizes, mean):
        super().__init__(sizes, mean)
        self.given = [mean]

    def forward(self, x):
        return super().forward(x - self.given[0].to(x.dtype) + self.mean)


RIGHT = [
    lambda sizes, mean: Net(sizes, mean),
    model_of_parts,
    lambda sizes, mean: Named(sizes, mean),
    lambda sizes, mean: ScaleOfOneRow(sizes, mean),
]

MISCONCEIVED = {
    "layers in a list": lambda sizes, mean: ListNet(sizes, mean),
    "the scale is no parameter": lambda sizes, mean: FixedScale(sizes, mean),
    "the mean is trained": lambda sizes, mean: TrainedMean(sizes, mean),
    "a write to the input": lambda sizes, mean: Subtracting(sizes, mean),
    "the scale is a buffer": lambda sizes, mean: BufferScale(sizes, mean),
    "the mean is a frozen parameter": lambda sizes, mean: FrozenMean(sizes, mean),
    "the mean is no state": lambda sizes, mean: LooseMean(sizes, mean),
}

WRONG = [
    said(lambda sizes, mean: PassingMean(sizes, mean), "the mean is no state"),
    said(
        lambda sizes, mean: Broken(sizes, mean),
        *("layers in a list", "the scale is no parameter", "the mean is no state"),
    ),
    lambda sizes, mean: ScaleInside(sizes, mean),
    lambda sizes, mean: MeanInTraining(sizes, mean),
    lambda sizes, mean: Rounding(sizes, mean),
    make_narrow := lambda sizes, mean: Narrow(sizes, mean),
    lambda sizes, mean: Remembering(sizes, mean),
    lambda sizes, mean: ReluLast(sizes, mean),
    make_frozen := lambda sizes, mean: Net(sizes, mean).requires_grad_(False),
    make_centred := lambda sizes, mean: Net(sizes, torch.zeros_like(mean)),
    make_from_another_start := lambda sizes, mean: ScaleOfAnotherStart(sizes, mean),
    make_cut := lambda sizes, mean: ScaleCut(sizes, mean),
    make_single := lambda sizes, mean: Single(sizes, mean),
    make_sizes := lambda sizes, mean: sizes,
    said(
        lambda sizes, mean: nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(sizes))), "the scale is no parameter"
    ),
    lambda sizes, mean: nn.Linear(sizes[0], sizes[-1]),
    make_double := lambda sizes, mean: Net(sizes, mean).double(),
    make_constant := lambda sizes, mean: ConstantStart(sizes, mean),
    one_model_for_all,
    models_in_pairs,
    lambda sizes, mean: SharedBySize(sizes, mean),
    said(lambda sizes, mean: ListAndTrainedMean(sizes, mean), "layers in a list", "the mean is trained"),
    said(lambda sizes, mean: ListAndOneScale(sizes, mean), "layers in a list"),
    said(lambda sizes, mean: MeanOfOneRow(sizes, mean), "the scale is no parameter"),
    lambda sizes, mean: Growing(sizes, mean),
    lambda sizes, mean: InATuple(sizes, mean),
    said(lambda sizes, mean: WithoutScale(sizes, mean), "the scale is no parameter"),
    lambda sizes, mean: GivenMean(sizes, mean),
]

EQUIVALENT = {
    "Named.__init__: for number, (a, b) in enumerate(pairwise(sizes)): ... | self.register_parameter('scale', nn.Parameter(torch.ones(sizes[-... -> (swapped)": "Neither line reads what the other one writes.",
    "Named.__init__: self.register_parameter('scale', nn.Parameter(torch.ones(sizes[-1]))) | self.mean = nn.Buffer(mean) -> (swapped)": "Neither line reads what the other one writes.",
    "Net.__init__: self.layers = nn.ModuleList((nn.Linear(a, b) for a, b in pairwise(sizes))) | self.scale = nn.Parameter(torch.ones(sizes[... -> (swapped)": "Neither line reads what the other one writes.",
    "Net.__init__: self.scale = nn.Parameter(torch.ones(sizes[-1])) | self.register_buffer('mean', mean) -> (swapped)": "Neither line reads what the other one writes.",
    "ScaleOfOneRow.__init__: self.scale = nn.Parameter(torch.ones(1, sizes[-1])) -> (dropped)": "The layer below has a scale of one dimension, which serves as well.",
}

GUARDS = {
    "The function below builds a model": {"dtype": make_double, "random": make_constant},
    "subtract a known mean from the input": {"value": make_centred},
    "The scale begins at 1 and is to be trained.": {
        "scale": make_from_another_start,
        "gradients": make_cut,
        "frozen": make_frozen,
    },
    "The mean is not.": {"parameters": MISCONCEIVED["the mean is trained"]},
    "It returns an `nn.Module`": {"module": make_sizes},
    "Its parameters are exactly the layers' weights and biases and the scale.": {
        "parameters": MISCONCEIVED["the scale is no parameter"]
    },
    "Everything that the result depends on is in `state_dict()`": {"state": MISCONCEIVED["the mean is no state"]},
    "a second model that loads it": {"shared": models_in_pairs},
    "After `model.double()` the model computes in float64.": {"moves": make_single, "digits": make_narrow},
}
