"""Sentences as HTML."""

from course_utils.inline import marked


def test_code_is_marked_and_the_rest_is_escaped():
    assert marked("`x < 1` & <b>") == "<code>x &lt; 1</code> &amp; &lt;b&gt;"
    assert marked("one ` alone") == "one ` alone"
