"""Questions that a run answers."""

import re

import pytest
import torch

from course_utils import predict


def second_pass():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward()
    y.backward()


def test_the_run_decides():
    shown = predict("What is 2 + 2?", lambda: 2 + 2, "3", "4", "5")
    assert shown.result == "4"
    assert re.findall(r"<label( class=right)?>.*?<span>(.)</span>", shown._repr_mimebundle_()["text/html"]) == [
        ("", "3"),
        (" class=right", "4"),
        ("", "5"),
    ]
    assert str(shown).splitlines() == ["What is 2 + 2?", "  - 3", "  - 4", "  - 5", "The run gave: 4"]


def test_an_error_may_be_the_answer():
    shown = predict("What does the second pass do?", second_pass, "it doubles x.grad", "RuntimeError")
    assert shown.result == "RuntimeError"
    assert shown.details.startswith("RuntimeError: Trying to backward through the graph a second time")


def test_what_is_printed_is_kept_for_the_end(capsys):
    shown = predict("Which?", lambda: print("half way") or "a", "a", "b")
    assert capsys.readouterr().out == ""
    assert shown.details == "half way"
    assert "<pre>half way</pre>" in shown._repr_mimebundle_()["text/html"]


def test_each_choice_may_have_its_reason():
    shown = predict("What is 2 + 2?", lambda: 4, {"22": "Texts join so: `'2' + '2'`.", "4": "Numbers add."})
    assert shown.result == "4"
    lines = ["  - 22", "      Texts join so: `'2' + '2'`.", "  - 4", "      Numbers add."]
    assert str(shown).splitlines()[1:5] == lines
    html = shown._repr_mimebundle_()["text/html"]
    assert html.index("<details>") < html.index("<dt>22</dt><dd>Texts join so: <code>") < html.index("</details>")
    with pytest.raises(ValueError, match="at least two choices, all different; got '4'"):
        predict("?", lambda: 4, {"4": "alone"})


def test_text_cannot_inject_markup():
    html = predict("<b>?", lambda: "<i>", "<i>", "<u>")._repr_mimebundle_()["text/html"]
    assert "<b>" not in html
    assert "<i>" not in html
    assert "<legend>&lt;b&gt;?</legend>" in html


def test_wrong_arguments():
    with pytest.raises(TypeError, match="needs a function to run, got int"):
        predict("?", 4, "3", "4")
    with pytest.raises(ValueError, match="needs at least two choices, all different; got '4'"):
        predict("?", lambda: 4, "4")
    with pytest.raises(ValueError, match="all different; got '4', '4'"):
        predict("?", lambda: 4, "4", "4")
    with pytest.raises(ValueError, match="the run gave '4', which is none of the choices '3', '5'"):
        predict("?", lambda: 4, "3", "5")
    with pytest.raises(ValueError, match=r"the run gave 'RuntimeError' \(RuntimeError: Trying to backward"):
        predict("?", second_pass, "3", "5")
