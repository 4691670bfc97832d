"""Settings, freezing and lines that have no effect."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, batches, blobs, lines, mlp
from tests.audit.registry import fault


@fault("setting-ignored")
def rate_set_on_the_optimizer():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        if step == 3:
            optimizer.lr = 0.01  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("setting-ignored")
def rate_under_another_key():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.Adam(
        [
            {"params": model[0].parameters(), "learning_rate": 1e-4},  # <- here
            {"params": model[2].parameters()},
        ],
        lr=0.01,
    )
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("setting-ignored")
def defaults_changed_on_the_way():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        if step == 3:
            optimizer.defaults["lr"] = 0.001  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("setting-ignored")
def dropout_switched_off_by_another_name():
    x, y = blobs()
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        if step == 3:
            model[1].rate = 0.0  # <- here
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("setting-ignored")
def averages_with_a_misspelt_momentum():
    x, y = blobs()
    model = Dropping()
    model.norm.momentun = 0.01  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("setting-ignored")
def mode_assigned_to_the_method():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval = True  # <- here
        with torch.no_grad():
            print((model(x).argmax(1) == y).float().mean().item())


@fault("setting-ignored")
def flag_of_the_outermost_module():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.training = False  # <- here
        with torch.no_grad():
            print((model(x).argmax(1) == y).float().mean().item())
        model.train()


@fault("freezes-nothing")
def layer_of_no_such_name():
    x, y = blobs()
    model = Dropping()
    for name, p in model.named_parameters():
        if name.startswith("encoder."):  # <- here
            p.requires_grad = False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("freezes-nothing")
def list_of_layers_that_are_not_there():
    frozen_layers = ["stem", "layer1"]

    def freeze(net):
        for name, part in net.named_modules():
            if any(key in name for key in frozen_layers):  # <- here
                part.requires_grad_(False)

    x, y = blobs()
    model = Dropping()
    freeze(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("freezes-nothing")
def state_frozen_in_place_of_parameters():
    x, y = blobs()
    model = mlp()
    for value in model[0].state_dict().values():
        value.requires_grad_(False)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("freezes-nothing")
def data_frozen_in_place_of_parameters():
    x, y = blobs()
    model = mlp()
    for p in model[0].parameters():
        p.data.requires_grad = False  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("misspelt-freeze")
def trainable_as_in_another_library():
    model = mlp()
    model[0].trainable = False  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = blobs()
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("misspelt-freeze")
def method_replaced_by_a_value():
    model = mlp()
    for p in model[0].parameters():
        p.requires_grad_ = False  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = blobs()
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("no-effect")
def asked_and_not_set():
    model = mlp()
    for p in model[0].parameters():
        p.requires_grad == False  # noqa: B015, E712  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = blobs()
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("no-effect")
def step_without_parentheses():
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step  # noqa: B018  # <- here


@fault("no-effect")
def evaluation_without_parentheses():
    x, y = blobs()
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval  # noqa: B018  # <- here
        with torch.no_grad():
            print((model(x).argmax(1) == y).float().mean().item())


@fault("no-effect")
def weights_clipped_into_nothing():
    critic = mlp(2, 1)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    for _ in range(6):
        real, fake = torch.randn(8, 2) + 1, torch.randn(8, 2)
        optimizer.zero_grad()
        (critic(fake).mean() - critic(real).mean()).backward()
        optimizer.step()
        for p in critic.parameters():
            p.data.clamp(-0.01, 0.01)  # <- here


@fault("no-effect")
def loss_divided_into_nothing():
    x, y = lines(32)
    model = mlp(out=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y, reduction="sum")
        loss / len(x)  # <- here
        loss.backward()
        optimizer.step()


@fault("no-effect")
def dropout_whose_result_is_dropped():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer, self.drop = nn.Linear(4, 8), nn.Linear(8, 3), nn.Dropout(0.5)

        def forward(self, x):
            h = self.inner(x).relu()
            self.drop(h)  # <- here
            return self.outer(h)

    x, y = blobs()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@fault("mark-dirty")
def input_doubled_in_place_unsaid():
    class Doubling(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)  # <- here
            return x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x, y = lines()
    first, last = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.01)
    for _ in range(6):
        h = first(x)
        Doubling.apply(h)
        optimizer.zero_grad()
        F.mse_loss(last(h), y).backward()
        optimizer.step()
