"""Clipping that is given a generator with nothing left in it, and tensors that were to leave their process."""

from multiprocessing.reduction import ForkingPickler

import torch
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from tests.explain.provoked import case


def passed(net):
    net(torch.ones(1, 2)).sum().backward()
    return net


@case("clip-of-nothing", "params = list(net.parameters())", "Line", warns=True)
def generator_that_the_optimizer_used_up():
    net = passed(nn.Linear(2, 1))
    params = net.parameters()  # a generator made here
    optimizer = SGD(params, lr=0.1)  # used up here
    nn.utils.clip_grad_norm_(params, 1.0)  # raised here
    optimizer.step()


@case("clip-of-nothing", "weights = list(net.parameters())", certain=False, warns=True)
def generator_that_was_counted():
    net = passed(nn.Linear(2, 1))
    weights = net.parameters()  # a generator made here
    print(sum(it.numel() for it in weights))  # used up here
    nn.utils.clip_grad_norm_(weights, 1.0)  # raised here


@case("clip-of-nothing", "gives no parameter", certain=False, warns=True)
def generator_that_may_not_be_used_up():
    net = passed(nn.Linear(2, 1))
    weights = net.parameters()  # a generator made here
    for it in weights:
        if it.dim() > 5:
            break
    nn.utils.clip_grad_norm_(weights, 1.0)  # raised here


@case("clip-of-nothing", "made in this line, and there is nothing in it", warns=True)
def model_without_parameters():
    act = nn.Sequential(nn.ReLU())
    nn.utils.clip_grad_norm_(act.parameters(), 1.0)  # raised here


@case("clip-of-nothing", "where params is made", certain=False, warns=True)
def generator_that_a_function_was_given():
    def clip(params):
        nn.utils.clip_grad_norm_(params, 1.0)  # raised here

    params = passed(nn.Linear(2, 1)).parameters()
    list(params)
    clip(params)


class Embedded(Dataset):
    def __init__(self):
        self.table = nn.Embedding(9, 3)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.table(torch.tensor(index)), index  # a sample is made here


@case("graph-to-other-process", "`Embedded` gives samples", "training loop")
def samples_with_a_graph_in_a_worker():
    for batch, _ in DataLoader(Embedded(), batch_size=2, num_workers=1):  # raised here
        print(batch.shape)


class Nested(Embedded):
    def __getitem__(self, index):
        sample, label = super().__getitem__(index)
        for name in "zyxwvuts":
            sample = {name: [sample]}
        return {"sample": sample, "label": label}  # a sample is made here


@case("graph-to-other-process", "`Nested` gives samples", "training loop")
def samples_whose_workers_traceback_is_long():
    for batch in DataLoader(Nested(), batch_size=2, num_workers=1):  # raised here
        print(batch["label"])


@case("graph-to-other-process", "`hidden` has a graph")
def tensor_with_a_graph_for_another_process():
    hidden = torch.ones(3, requires_grad=True).exp()
    ForkingPickler.dumps(hidden)  # raised here
