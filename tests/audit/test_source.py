"""What the source says at a line."""

import linecache

from course_utils.audit import counting, source
from course_utils.audit.classes import assigned_anywhere
from course_utils.audit.expressions import products, zipped_parameters
from course_utils.audit.lines import Spot

TEXT = """\
@torch.no_grad()
def forward(self, x):
    return self.layer(x)


def train(model, optimizer, data):
    total = 0
    log = {"loss": []}
    for i, (x, y) in enumerate(data):
        with torch.no_grad():
            code = encoder(x)
        h.detach()
        h = h.detach()
        optimizer.zero_grad
        loss = criterion(model(x), y)
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
        total += loss
        log["loss"].append(loss)
        model(x)


model.head = nn.Linear(3, 2)
model[2] = nn.Linear(3, 2)
p.require_grad = False
model = nn.Sequential(
    nn.Linear(4, 3),
    nn.Softmax(dim=1),
)
"""
FILE = "/source/example.py"
linecache.cache[FILE] = (len(TEXT), None, TEXT.splitlines(keepends=True), FILE)


def at(text):
    return Spot(FILE, next(number for number, line in enumerate(TEXT.splitlines(), 1) if text in line))


def test_statements_that_lose_their_result():
    assert source.is_discarded(at("        h.detach()"), "detach")
    assert not source.is_discarded(at("h = h.detach()"), "detach")
    assert source.is_bare_call(at("        model(x)"))
    assert not source.is_bare_call(at("loss = criterion"))
    assert source.named_only(at("optimizer.step()"), "zero_grad") == at("optimizer.zero_grad")
    assert source.named_only(at("optimizer.step()"), "backward") is None


def test_lines_that_switch_recording_off():
    assert source.no_grad_around(at("code = encoder(x)")) == at("        with torch.no_grad()")
    assert source.no_grad_around(at("return self.layer(x)")) == at("@torch.no_grad()")
    assert source.no_grad_around(at("loss.backward()")) is None


def test_names_and_where_they_grow():
    assert source.assigned(at("loss.backward()"), "loss") == at("loss = criterion")
    assert source.augmented(at("loss.backward()"), "total") == at("total += loss")
    assert source.filled(at("loss.backward()"), "log") == at('log["loss"].append')
    assert source.filled(at("loss.backward()"), "nothing") is None


def test_windows():
    assert counting.in_every_nth(at("optimizer.step()"))
    assert counting.counting_if(at("optimizer.step()")) == at("% 4 == 0")
    assert not counting.in_every_nth(at("loss.backward()"))
    assert source.loop_around(at("loss.backward()")).lineno == at("for i, (x, y)").line


def test_parts_that_are_replaced_or_made():
    assert source.replaced_parts(FILE, "head") == [at("model.head =")]
    assert source.replaced_parts(FILE, "2") == [at("model[2] =")]
    assert source.calls(FILE, r"\bSoftmax$") == [at("nn.Softmax")]
    assert source.assignments_to(FILE, ("require_grad",)) == [(at("p.require_grad"), "p")]


def test_a_file_without_source():
    nowhere = Spot("/source/missing.py", 3)
    assert source.tree_of(nowhere.file) is None
    assert source.statement(nowhere) is None
    assert source.assigned(nowhere, "x") is None
    assert source.text_at(nowhere) == ""


def test_what_is_bound_called_and_multiplied(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(
        "w = make()\n"
        "opt = SGD([w])\n"
        "w = w.double()\n"
        "losses.append(loss_of(net(x)))\n"
        "net(x.float())\n"
        "loss = -(log_prob * (returns - value)).mean()\n"
        "for a, b in zip(ema.parameters(), net.parameters()):\n"
        "    a.lerp_(b, 0.1)\n"
        "setattr(net, 'head', new)\n"
    )
    name = str(file)
    assert source.first_assigned("w", Spot(name, 2)) == Spot(name, 3)
    assert source.first_assigned("w", Spot(name, 3)) is None
    assert not source.is_bare_call(Spot(name, 4), "net")
    assert source.is_bare_call(Spot(name, 4), "other")
    assert source.is_bare_call(Spot(name, 5), "net")
    assert source.bound_at(Spot(name, 6)) == "loss"
    assert products(Spot(name, 6)) == (("log_prob", False), ("returns - value", True))
    assert list(zipped_parameters(Spot(name, 8))) == [("ema", "net")]
    assert source.replaced_parts(name, "head") == [Spot(name, 9)]

    text = "class Net:\n    def __init__(self):\n        self.layers = [1]\n"
    file.write_text(text)
    space = {"__name__": "gone"}
    exec(compile(text, name, "exec"), space)
    linecache.checkcache(name)
    assert assigned_anywhere(space["Net"], "self.layers") == Spot(name, 3), "its module is in no list of modules"
