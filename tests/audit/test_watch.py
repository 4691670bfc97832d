"""`audit` as context manager and decorator, and what its report says."""

import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import course_utils
from course_utils.audit.finding import Finding
from course_utils.audit.report import AuditFailed, Report
from course_utils.audit.rules import RULES
from course_utils.audit.verdict import without_consequences
from course_utils.audit.watch import audit
from tests.audit.parts import blobs, mlp
from tests.test_index import FOLDER, headings

FIELDS = {"code", "level", "file", "line", "headline", "why", "fix", "certain", "section", "times", "where"}


def faulty(steps=6):
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def doubtful(steps=6):
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward(retain_graph=True)
        optimizer.step()


def test_the_public_name_is_the_watch():
    assert isinstance(course_utils.audit(), audit)
    assert course_utils.audit is course_utils.__getattr__("audit"), "the same, imported first or later"


def over_an_iterator(until=99):
    x, y = blobs()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pairs = zip(x.split(4), y.split(4), strict=True)
    for round_ in range(3):
        {number: number for number in range(until)}[round_]  # a KeyError from then on
        for rows, labels in pairs:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()


def test_loops_are_taken_to_have_ended_unless_the_body_raised():
    try:
        raise ValueError("of another time")
    except ValueError:
        with audit() as report:
            over_an_iterator()
    assert report.codes == ("iterator-spent",)
    with pytest.raises(KeyError), audit() as report:
        over_an_iterator(until=1)
    assert report.codes == ()


def test_who_catches_the_error_below_the_watch_tells_it():
    with audit() as report:
        try:
            over_an_iterator(until=1)
        except KeyError:
            report.interrupted = True
    assert report.codes == ()


def test_findings_are_plain_data():
    with audit() as report:
        faulty()
    (finding,) = report.findings
    assert finding.code == "no-zero-grad"
    assert finding.level == "error"
    assert finding.file == __file__
    assert finding.certain
    assert finding.names == ("optimizer",)
    assert "optimizer.zero_grad()" in finding.fix
    data = report.as_json()
    assert set(data["findings"][0]) == FIELDS
    assert set(data["watched"]) == {"steps", "backwards", "checks", "not_checked"}
    assert json.loads(json.dumps(data)) == data
    assert data["watched"]["steps"] == data["watched"]["backwards"] == 6


def test_the_report_says_what_and_how_much():
    with audit() as report:
        faulty()
    text = str(report)
    assert "error[no-zero-grad] 5 of 6 steps of optimizer used old gradients again" in text
    assert "--> test_watch.py:" in text
    assert "<- made here" in text
    assert "watched 6 steps and 6 backward passes" in text
    assert repr(report) == "Report: 1 error in 6 steps"


def test_a_short_watch_says_so():
    with audit() as report:
        doubtful(2)
    assert not report.findings
    assert "fewer than 3 steps tell little" in str(report)


def test_a_decorated_function_keeps_its_report(capsys):
    @audit(steps=10)
    def training(steps):
        return faulty(steps)

    assert isinstance(training(5), nn.Module)
    assert training.report.codes == ("no-zero-grad",)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error[no-zero-grad]" in captured.err
    training(steps=4)
    assert training.report.watched.steps == 4


def test_strict_raises_on_what_is_likely():
    with audit() as report:
        doubtful()
    assert [finding.level for finding in report.findings] == ["likely"]
    assert not report.failing()
    assert report.failing(strict=True)
    with pytest.raises(AuditFailed, match="needless-retain") as raised, audit(strict=True):
        doubtful()
    assert raised.value.report.codes == ("needless-retain",)


def test_an_error_of_the_body_comes_through_with_what_was_found():
    watch = audit(strict=True)

    def failing():
        with watch as report:
            reports.append(report)
            faulty()
            raise ZeroDivisionError

    reports = []
    with pytest.raises(ZeroDivisionError):
        failing()
    (report,) = reports
    assert report.codes == ("no-zero-grad",)


def test_it_takes_models_optimizers_and_tensors():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = blobs()
    with audit(model, optimizer) as report:
        for _ in range(4):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert report.findings[0].names == ("optimizer",)
    assert "model.0.weight" in report.findings[0].why
    with pytest.raises(TypeError, match="got list; it takes models, optimizers and tensors, or nothing"):
        audit([model])


def test_one_watch_inside_another():
    with audit() as outer:
        with audit() as inner:
            faulty()
        faulty()
    assert inner.watched.steps == 6
    assert inner.codes == outer.codes == ("no-zero-grad",)


def test_a_check_that_fails_is_said_and_harms_nobody(monkeypatch):
    from course_utils.audit.checks.clearing import Clearing

    def broken(self, event):
        raise ValueError("broken")

    monkeypatch.setattr(Clearing, "step_begins", broken)
    with audit() as report:
        faulty()
    assert report.watched.not_checked["no-zero-grad"] == "the check itself failed: ValueError: broken"
    assert "no-zero-grad" not in report.watched.checks
    assert "no-zero-grad (the check itself failed: ValueError: broken)" in str(report)


def test_without_the_full_tier_its_checks_are_named_as_missing():
    with audit(steps=0) as report:
        faulty()
    full = {code for code, rule in RULES.items() if rule.tier == "full"}
    assert set(report.watched.not_checked) == full
    assert report.codes == ("no-zero-grad",)


def test_what_follows_from_a_cause_is_not_said():
    from course_utils.audit.check import Found

    def found(code, *about, level="error"):
        return Found(Finding(code, level, "", 0, "", "", "", True, "", 1), frozenset(about))

    cause, effect, other = found("other-tensors", 1, 2), found("never-reached", 2), found("never-reached", 3)
    kept = without_consequences([cause, effect, other])
    assert kept == [cause.finding, other.finding]
    assert without_consequences([found("other-tensors", level="note"), effect])[1] == effect.finding


@pytest.mark.parametrize("code", RULES)
def test_each_code_is_taught_where_it_says(code):
    lesson, _, heading = RULES[code].section.partition("#")
    assert heading in headings(FOLDER / f"{lesson}.ipynb")
    assert not set(RULES[code].hides) - set(RULES)
    assert code not in RULES[code].hides
    assert not [other for other in RULES[code].hides if code in RULES[other].hides], (
        "two that hide each other say nothing"
    )


def test_sarif_names_rule_level_and_line():
    with audit() as report:
        faulty()
        doubtful()
    (run,) = report.sarif()["runs"]
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels == {"no-zero-grad": "error", "needless-retain": "warning"}
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(levels)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("tests/audit/test_watch.py")
    assert place["region"]["startLine"] == report.findings[0].line
    (beside,) = run["results"][0]["relatedLocations"]
    assert beside["message"]["text"] == report.findings[0].where[0].role == "made here"
    assert beside["physicalLocation"]["region"]["startLine"] == report.findings[0].where[0].line


def test_what_could_not_be_looked_for_is_said():
    with audit() as nothing:
        pass
    assert set(nothing.watched.not_checked.values()) == {"no backward pass ran"}
    with audit() as passes:
        F.cross_entropy(mlp()(blobs()[0]), blobs()[1]).backward()
    assert passes.watched.not_checked["no-zero-grad"] == "no step was seen"
    assert "softmax-twice" in passes.watched.checks


def test_an_empty_report():
    report = Report()
    assert "nothing found" in str(report)
    assert report.failing(strict=True) == ()
