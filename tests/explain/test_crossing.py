"""An explanation on its way out of a sandbox."""

import msgspec
import pytest
import torch

from course_utils import explain
from course_utils.explain.crossing import Told, ToldPlace, heard, told
from course_utils.explain.rules import MAX_LENGTH


def card():
    try:
        torch.ones(2, requires_grad=True).exp().numpy()
    except RuntimeError as error:
        return explain(error)


def test_what_crosses_is_what_is_read():
    there = card()
    here = heard(msgspec.msgpack.decode(msgspec.msgpack.encode(told(there)), type=Told))
    assert (here.code, here.headline, here.why, here.fix) == (there.code, there.headline, there.why, there.fix)
    assert (here.certain, here.section) == (there.certain, there.section)
    assert [(place.role, place.file, place.text) for place in here.where] == [
        (place.role, "", place.text) for place in there.where
    ]
    assert "line " in str(here)


@pytest.mark.parametrize(
    "forged",
    [
        {"headline": "x" * (MAX_LENGTH + 1)},
        {"certain": "yes"},
        {"where": [{"role": "", "line": 1, "text": ""}] * 4},
        {"where": [{"role": "", "line": -1, "text": ""}]},
        {"fix": None},
    ],
)
def test_what_is_too_long_or_of_another_type_is_refused(forged):
    fields = {**msgspec.to_builtins(told(card())), **forged}
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=Told)


def test_what_is_made_up_is_shown_as_plain_text_or_not_at_all():
    forged = Told("same-loss-twice", "\x1b[2J<script>", (ToldPlace("\u202e", 3, "\r\n"),), "why", "fix", True)
    assert heard(forged).headline == " [2J<script>"
    assert heard(forged).where[0].text.strip() == ""
    assert heard(Told("full-marks", "", (), "", "", True)) is None
