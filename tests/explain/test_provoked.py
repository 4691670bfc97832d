"""Every message that has a card, provoked for real: the card names the cause, at the right lines."""

import ast
import importlib
import pkgutil
import warnings

import pytest
import torch

from course_utils.explain import passes
from course_utils.explain.explaining import explain
from course_utils.explain.families import RULES
from course_utils.explain.sections import codes
from course_utils.explain.situation import situation_of
from tests.explain import provoked

for found in pkgutil.iter_modules(provoked.__path__):
    importlib.import_module(f"{provoked.__name__}.{found.name}")

CASES = provoked.CASES
_RAN: dict[str, list] = {}


def happened(name: str) -> list:
    """Run a case, and return the error or the warnings that it ended with."""
    case = CASES[name]
    if case.remembered:
        passes.remember()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            case.run()
        except Exception as error:
            return caught if case.warns else [error]
    return caught


@pytest.fixture(autouse=True)
def as_before():
    torch.set_warn_always(True)  # some warnings are given once in a process, whichever test comes first
    yield
    torch.set_warn_always(False)
    passes.forget()
    torch.set_grad_enabled(True)


@pytest.mark.parametrize("name", CASES)
def test_the_card_names_the_cause(name):
    case = CASES[name]
    said = [card for card in map(explain, happened(name)) if card is not None]
    assert said, "nothing was said"
    card = said[0]
    assert (card.code, card.certain) == (case.code, case.certain), str(card)
    for words in case.says:
        assert words in f"{card.headline}\n{card.why}\n{card.fix}", str(card)
    for place in card.where:
        assert place.text.rpartition("# ")[2] == place.role, f"{place.file}:{place.line} is not {place.role}"
    assert len(str(card).splitlines()) <= 14
    assert max(map(len, str(card).splitlines())) <= 130
    assert card.code in codes()
    ast.parse(card.fix)


def test_every_rule_has_a_message_that_it_was_tried_on():
    used = set()
    for name in CASES:
        for event in happened(name):
            situation = situation_of(event)
            for rule in RULES if situation is not None else ():
                if rule.applied(situation) is not None:
                    used.add(rule)
                    break
        passes.forget()
        torch.set_grad_enabled(True)
    assert {f"{rule.kind.__name__}: {rule.pattern}" for rule in set(RULES) - used} == set()


def test_there_are_as_many_messages_as_were_promised():
    assert len(CASES) >= 240
    assert len({case.code for case in CASES.values()}) >= 100
