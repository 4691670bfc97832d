"""Right loops whose teachers draw on purpose, move along, or are in evaluation."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tests.audit.parts import Dropping, blobs, mlp, trained
from tests.audit.registry import right


@right
def teacher_in_evaluation():
    teacher, student = trained(Dropping()), mlp()
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(8):
        x, _ = blobs()
        with torch.no_grad():
            wanted = teacher(x)
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def noise_that_was_asked_for():
    teacher, student = trained(Dropping()), mlp()
    teacher.requires_grad_(False)
    teacher.norm.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    teacher.train()
    teacher.norm.eval()
    for _ in range(8):
        x, _ = blobs()
        with torch.no_grad():
            wanted = teacher(x)
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def mean_of_several_draws():
    teacher, student = trained(Dropping()), mlp()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(8):
        x, _ = blobs()
        with torch.no_grad():
            wanted = torch.stack([teacher(x) for _ in range(4)]).mean(0)
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@right
def teacher_that_is_an_average():
    student = trained(Dropping())
    teacher = copy.deepcopy(student)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(8):
        x, _ = blobs()
        with torch.no_grad():
            wanted = teacher(x)
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.lerp_(fast, 0.1)


@right
def features_that_are_dropped_for_a_head():
    body, head = trained(Dropping()), nn.Linear(3, 3)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(8):
        x, y = blobs()
        with torch.no_grad():
            features = body(x)
        loss = F.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
