"""The watch against loops: right ones are left in peace, faulty ones are seen through."""

import pytest

import tests.audit.zoo_faults
import tests.audit.zoo_right  # noqa: F401
from course_utils.audit.checks import CHECKS
from course_utils.audit.rules import RULES
from tests.audit.planting import planted
from tests.audit.registry import FAULTS, RIGHT
from tests.audit.watching import alarms, failures, watched


@pytest.mark.parametrize("name", RIGHT)
def test_right_loops_are_left_in_peace(name, record_property):
    report = watched(RIGHT[name])
    record_property("audit_right", 1)
    record_property("audit_false", int(bool(alarms(report))))
    assert not failures(report)
    assert not alarms(report), str(report)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found_at_cause_and_line(name, record_property):
    fault = FAULTS[name]
    report = watched(fault.run)
    hits = [finding for finding in report.findings if finding.code == fault.code and finding.line in fault.lines]
    record_property("audit_faults", 1)
    record_property("audit_found", int(bool(hits)))
    assert not failures(report)
    assert hits, f"{fault.code} in lines {sorted(fault.lines)}, got:\n{report}"
    assert not set(alarms(report)) - {fault.code} - fault.also, f"more than the cause is said:\n{report}"


# Loops to plant in: one model called `model`, one optimizer called `optimizer`, and enough steps.
HOSTS = (
    "plain",
    "logged_carefully",
    "distillation",
    "contrastive",
    "moving_average",
    "low_rank_adapters",
    "variational_autoencoder",
    "several_folds",
    "sequence_to_sequence",
    "domain_adversary",
    "siamese_with_stop_gradient",
    "quantized_autoencoder",
    "differential_equation",
    "activations_by_hooks",
)


@pytest.mark.parametrize("host", HOSTS)
def test_planted_faults_are_found(host, record_property):
    missed = []
    for fault in planted(RIGHT[host]):
        try:
            report = watched(fault.run)
        except (NameError, RuntimeError):
            continue  # the rule does not fit this loop, or PyTorch refuses it by itself
        found = bool(fault.codes & set(report.codes))
        record_property("audit_planted", 1)
        record_property("audit_planted_found", int(found))
        if not found:
            missed.append(f"{fault.name}: {report.codes}")
    assert not missed


def test_the_zoos_are_large_enough():
    assert len(RIGHT) >= 40
    assert len(FAULTS) >= 60
    assert {fault.code for fault in FAULTS.values()} == set(RULES), "each code has a faulty loop"


def test_each_code_has_one_check():
    codes = [code for check in CHECKS for code in check.codes]
    assert sorted(codes) == sorted(RULES)
