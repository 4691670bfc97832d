"""The lines that a finding names beside its own."""

import linecache

import pytest

from course_utils.audit.beside import MOST, beside
from course_utils.audit.lines import Spot

TEXT = """\
class Trainer:
    def __init__(self, model):
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = SGD(model.parameters(), lr=0.1)

    def fit(self, x, y):
        scores = self.model(x)
        loss = self.criterion(scores, y)
        loss.backward()
        self.optimizer.step()


def train(model, x, y):
    measure = nn.MSELoss()
    measure(model(x), y).backward()
    for x in batches:
        value = measure(model(x), y)


def other(x):
    total = count(x)
    total = count(total)
    total.backward()
    show(total)


def teach(teacher):
    teacher.eval()
    teacher(student(x))


teacher = nn.Linear(3, 3)
student = nn.Linear(3, 2)
teach(student)
teacher(x)
student.forward(x)
model = nn.Linear(3, 2)
model.to("cpu")
train(model, x, y)
model(x)
"""
FILE = "/source/beside.py"
linecache.cache[FILE] = (len(TEXT), None, TEXT.splitlines(keepends=True), FILE)


def at(text):
    return Spot(FILE, next(number for number, line in enumerate(TEXT.splitlines(), 1) if text in line))


def said(text, told=()):
    return [(place.role, place.text) for place in beside(at(text), told)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loss = self.criterion", [("made here", "self.criterion = nn.CrossEntropyLoss()")]),
        ("self.criterion = nn", [("used here", "loss = self.criterion(scores, y)")]),
        ("self.optimizer = SGD", [("used here", "self.optimizer.step()")]),
        ("loss.backward()", [("made here", "loss = self.criterion(scores, y)")]),
        ("value = measure", [("made here", "measure = nn.MSELoss()"), ("made here", "model = nn.Linear(3, 2)")]),
        ("model = nn.Linear", [("used here", "measure(model(x), y).backward()")]),
        # The function is given another one.
        ("teacher = nn.Linear", [("used here", "teacher(x)")]),
        ("teacher(student(x))", [("made here", "student = nn.Linear(3, 2)")]),
    ],
)
def test_what_a_line_calls_was_made_and_what_it_makes_is_used(line, expected):
    assert said(line) == expected


@pytest.mark.parametrize("line", ["total.backward()", "show(total)", "for x in batches", "class Trainer", "scores = s"])
def test_nothing_is_said_of_what_is_made_twice_or_not_in_the_file(line):
    assert said(line) == []


def test_what_a_check_tells_comes_first_and_a_line_stands_once():
    told = [("trained here", at("scores = self")), ("trained here", at("loss.backward()"))]
    assert said("loss.backward()", told) == [
        ("trained here", "scores = self.model(x)"),
        ("made here", "loss = self.criterion(scores, y)"),
    ]
    assert len(beside(at("value = measure"), told)) == MOST
    assert said("loss.backward()", [("computed here", at("loss = self"))]) == [
        ("computed here", "loss = self.criterion(scores, y)")
    ]
