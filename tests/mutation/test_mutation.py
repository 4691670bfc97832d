"""Mutants of right answers are killed, or listed with a reason; every answer is judged alike on every seed."""

import pytest

from course_utils.checks.registry import exercises
from tests.mutation.decided import equivalent, undecided
from tests.mutation.making import mutants
from tests.mutation.running import results, warm
from tests.mutation.seeds import SEEDS, differing


@pytest.mark.parametrize("name", exercises())
def test_mutants_are_killed_or_decided(name: str, record_property: pytest.FixtureRequest) -> None:
    made = mutants(name)
    assert len({it.key for it in made}) == len(made)
    warm([name])
    # One process at a time: the suite runs in as many as there are cores.
    survivors = {it.mutant.key for it in results(made, jobs=1) if it.survived}
    decided, waiting = equivalent(name), undecided().get(name, frozenset())
    record_property("rule-made mutants", len(made) - len(decided))
    record_property("rule-made survivors", len(survivors - set(decided)))
    assert not survivors - set(decided) - waiting, "kill them, or give the reason in EQUIVALENT"
    assert not set(decided) - survivors, "listed in EQUIVALENT, and killed or never made"
    assert not waiting - survivors, "listed in open.txt, and killed or never made: take them out"
    assert not waiting & set(decided), "decided, and still in open.txt"
    assert all(reason.strip() for reason in decided.values())


@pytest.mark.parametrize("name", exercises())
def test_every_answer_is_judged_alike_on_every_seed(name: str, request: pytest.FixtureRequest) -> None:
    part = request.config.option.sample or request.config.option.changed
    warm([name])
    assert not differing(name, SEEDS[:2] if part else SEEDS, jobs=1)
