"""What one pass kept by the number of the batch, read by a pass with other rows under that number."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from tests.audit.parts import blobs, mlp
from tests.audit.registry import fault


def shuffled(count=32, size=8):
    return DataLoader(TensorDataset(*blobs(count)), batch_size=size, shuffle=True)


@torch.no_grad()
def answers(teacher, loader):
    return [teacher(x) for x, _ in loader]


@fault("kept-by-number")
def teacher_asked_once_for_each_number():
    def student(loader, soft, epochs):
        net = mlp()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(epochs):
            for at, (x, y) in enumerate(loader):
                own = net(x)
                apart = F.kl_div(own.log_softmax(1), soft[at].softmax(1), reduction="batchmean")  # <- here
                optimizer.zero_grad()
                (apart + F.cross_entropy(own, y)).backward()
                optimizer.step()

    loader = shuffled()
    student(loader, answers(mlp(), loader), 3)


@fault("kept-by-number")
def features_beside_the_loader():
    torch.manual_seed(1)
    loader, body, head = shuffled(), mlp(4, 6), mlp(6, 3)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
    features = []
    with torch.no_grad():
        for x, _ in loader:
            found = body(x)
            features.append(found)
    for _ in range(3):
        for (_, y), known in zip(loader, features, strict=True):  # <- here
            loss = F.cross_entropy(head(known), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("kept-by-number")
def answers_of_the_epoch_before():
    class Trainer:
        def __init__(self):
            self.net = mlp()
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.before = {}

        def epoch(self, loader):
            for number, batch in enumerate(loader):
                x, y = batch
                out = self.net(x)
                loss = F.cross_entropy(out, y)
                if number in self.before:
                    loss = loss + F.mse_loss(out.softmax(1), self.before[number])  # <- here
                self.before[number] = out.softmax(1).detach()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    trainer, loader = Trainer(), shuffled()
    for _ in range(3):
        trainer.epoch(loader)


@fault("kept-by-number")
def rows_in_a_new_order_each_epoch():
    (x, _), net, teacher = blobs(32), mlp(), mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    known = {}
    for epoch in range(3):
        for k, rows in enumerate(torch.randperm(len(x)).split(8)):
            if epoch == 0:
                with torch.no_grad():
                    known[k] = teacher(x[rows])
            loss = F.mse_loss(net(x[rows]), known[k])  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("kept-by-number")
def slices_of_what_a_pass_joined():
    loader, net, teacher = shuffled(), mlp(), mlp()
    soft = torch.cat(answers(teacher, loader))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        for i, (x, _) in enumerate(loader):
            wanted = soft[i * 8 : (i + 1) * 8]  # <- here
            loss = F.mse_loss(net(x), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
