"""The card in a notebook."""

from course_utils.explain.card import Card, html
from course_utils.explain.explanation import MAX_PLACES, Explanation, Place

CARD = Explanation(
    "carried-state",
    "`<h>` still holds a graph",
    (Place("carried over here", "/tmp/ipykernel_1/2.py", 3, "h = cell(x, h)  # <script>"),),
    "Because `h` & co.",
    "h = h.detach()\nh = None",
    True,
    "04_retain_graph#Hidden-state-between-sequences:-truncated-backpropagation",
)


def test_html_escapes_what_the_learner_wrote_and_says_everything_in_words():
    shown = html(CARD)
    assert "<script>" not in shown
    assert "<code>&lt;h&gt;</code>" in shown
    assert "# &lt;script&gt;" in shown
    for words in (
        "carried over here",
        "Fix (cause certain):",
        "line 3",
        "lesson 04",
        "Because <code>h</code> &amp; co.",
        'role="note"',
    ):
        assert words in shown
    assert "color:" not in shown.replace("border-left", "")  # the text has the theme's own colour


def test_short_is_headline_fix_and_section():
    card = Card(CARD, short=True)
    assert str(card).splitlines() == [
        "[carried-state] `<h>` still holds a graph",
        "Fix (cause certain): h = h.detach()",
        "Taught in lesson 04, 'Hidden state between sequences: truncated backpropagation'. More: %explain",
    ]
    assert "Because" not in card._repr_mimebundle_()["text/html"]
    assert str(Card(CARD)) == str(CARD)


def test_a_card_has_at_most_14_lines_whatever_it_says():
    place = CARD.where[0]
    long = Explanation("code", "x" * 500, (place,) * 9, "word " * 300, "fix\n" * 30, False, "a section of nobody")
    lines = str(long).splitlines()
    assert len(lines) == 14
    assert max(map(len, lines)) <= 130
    assert sum("carried over here" in line for line in lines) == MAX_PLACES
    assert "Fix (cause probable):" in lines
