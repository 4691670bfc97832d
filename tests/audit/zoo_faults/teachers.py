"""Teachers that are trained no more, and were not put into evaluation."""

import io

import torch
from torch.nn import functional as F

from tests.audit.parts import Dropping, blobs, mlp, trained
from tests.audit.registry import fault


@fault("eval-in-train", "frozen-moves")
def trained_before_and_frozen():
    teacher, student = trained(Dropping()), mlp()
    teacher.requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(8):
        x, y = blobs()
        scores = teacher(x)  # <- here
        soft = F.softmax(scores / 2, dim=1)
        out = student(x)
        loss = F.cross_entropy(out, y) + F.kl_div(F.log_softmax(out / 2, dim=1), soft, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("eval-in-train")
def loaded_from_a_file_and_asked():
    file = io.BytesIO()
    torch.save(Dropping().state_dict(), file)
    file.seek(0)
    teacher, student = Dropping(), mlp()
    teacher.load_state_dict(torch.load(file))
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    for _ in range(8):
        x, _ = blobs()
        with torch.no_grad():
            labels = teacher(x).argmax(1)  # <- here
        loss = F.cross_entropy(student(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("eval-in-train")
def squares_to_what_it_says():
    teacher, student = trained(Dropping()), mlp()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(8):
        x, _ = blobs()
        with torch.no_grad():
            wanted = teacher(x)  # <- here
        loss = ((student(x) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
