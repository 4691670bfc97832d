"""Entries are found by the words that people use."""

from pathlib import Path

import pytest

from course_utils.ask.entries import Entry, entries
from course_utils.ask.search import best, index_of

ROOT = Path(__file__).parents[2]
ENTRIES = entries(ROOT)
INDEX = index_of(ENTRIES)
# Titles as asked, and the headings of the entries that were written for them.
TITLES = [
    (row[1], row[3])
    for path in sorted((ROOT / "benchmarks" / "questions").glob("*.tsv"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#") and len(row := line.split("\t")) == 4
]


def entry(question, answer="Yes.", also=()):
    return Entry("step.ipynb", question, answer, tuple(also), (), "import torch", "Because.")


GRAD = entry("Why is my grad None?", also=("param.grad is NoneType",))
STEP = entry("Does step() clear the gradients?", "No, it only reads them.")
MEMORY = entry("Why does memory grow?", "A list of losses holds the graph of each.")


def test_the_best_come_first():
    assert best("my grad is None", index_of([STEP, GRAD, MEMORY]))[0] == GRAD
    assert best("does optimizer.step() reset gradient", index_of([STEP, GRAD, MEMORY]))[0] == STEP
    assert best("memory grows", index_of([STEP, GRAD, MEMORY])) == [MEMORY]


def test_other_wordings_and_the_answer_are_searched_too():
    assert best("nonetype param", index_of([STEP, GRAD, MEMORY])) == [GRAD]
    assert best("losses in a list", index_of([STEP, GRAD, MEMORY]))[0] == MEMORY


@pytest.mark.parametrize("words", ["BatchNorm2d statistics", "batch_norm statistics", "batchnorm", "BATCH NORM"])
def test_names_are_found_by_their_words_in_any_form(words):
    norm = entry("Why does F.batch_norm change in training?", also=("BatchNorm layers",))
    assert best(words, index_of([STEP, norm, MEMORY]))[0] == norm


def test_a_name_with_a_single_letter_is_one_word():
    assert best("W", index_of([entry("Adam or AdamW?"), STEP])) == []


def test_a_long_title_with_words_that_no_entry_has_finds_its_wording():
    rare = "MyProject issue in trainer.py of Foo: Does step() clear the gradients in BarModel with memory of baz?"
    assert best(rare, index_of([MEMORY, GRAD, STEP]))[0] == STEP


@pytest.mark.parametrize("slip", ["gradeints", "gradints", "gradientts"])
def test_a_misspelt_word_is_taken_for_the_known_one(slip):
    assert best(slip, index_of([MEMORY, GRAD, STEP])) == [STEP]


@pytest.mark.parametrize(
    ("asked", "found"), [("梯度为None", GRAD), ("optimizer.step()会清零梯度吗", STEP), ("显存不断增加", MEMORY)]
)
def test_a_title_in_chinese_is_searched_by_its_english_words(asked, found):
    assert best(asked, index_of([MEMORY, GRAD, STEP]))[0] == found


def test_a_short_or_strange_word_is_taken_for_none():
    assert best("grae", index_of([GRAD])) == []
    assert best("TSANet", index_of([MEMORY, GRAD, STEP])) == []


TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 87, in <module>
    loss.backward()
  File "/usr/lib/python3/site-packages/torch/_tensor.py", line 492, in backward
    torch.autograd.backward(
  File "/usr/lib/python3/site-packages/torch/autograd/__init__.py", line 251, in backward
    Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
RuntimeError: """


@pytest.mark.parametrize("before", ["", "RuntimeError: ", TRACEBACK], ids=["text", "error", "traceback"])
@pytest.mark.parametrize(
    ("error", "heading"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (32x25088 and 4096x1000)", '"mat1 and mat2 shapes'),
        ("element 0 of tensors does not require grad and does not have a grad_fn", '"element 0 of tensors'),
        ("The size of tensor a (512) must match the size of tensor b (768) at dimension 2", '"The size of'),
        ("Target 10 is out of bounds.", '"Target 4 is out of bounds"'),
        ("CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 10.76 GiB total capacity)", '"CUDA out of memory'),
        ("Found dtype Long but expected Float", "\"result type Float can't be cast"),
    ],
)
def test_an_error_finds_its_entry_with_its_own_shapes_and_with_what_stood_above_it(before, error, heading):
    assert any(found.question.startswith(heading) for found in best(before + error, INDEX))


def test_quotes_and_signs_of_the_search_language_do_no_harm():
    assert best('"grad" AND (None* OR NEAR', index_of([GRAD, MEMORY]))[0] == GRAD
    assert best("'; drop table entries; --", index_of([GRAD, MEMORY])) == []
    assert best("?!", index_of([GRAD])) == []


def test_common_words_alone_are_searched_as_they_are():
    assert best("why does it", index_of([GRAD, MEMORY]))


def test_at_most_three():
    assert len(best("gradient", index_of([entry(f"gradient {number}?") for number in range(9)]))) == 3


@pytest.mark.parametrize("known", ENTRIES, ids=lambda known: known.question)
def test_every_entry_is_found_by_its_own_heading_and_wordings(known):
    assert known in best(known.question, INDEX)
    missed = [text for text in known.also if known not in best(text, INDEX)]
    assert len(missed) <= len(known.also) / 3, missed


def test_the_titles_from_which_entries_were_written_name_entries():
    assert {heading for _, heading in TITLES} <= {known.question for known in ENTRIES}


def test_most_titles_from_which_entries_were_written_find_theirs():
    found = [heading in (known.question for known in best(title, INDEX)) for title, heading in TITLES]
    assert len(found) > 800
    assert sum(found) >= 0.95 * len(found)


def test_the_address_of_a_lesson_is_no_answer():
    linked = Entry("a.ipynb", "Why?", "So.", (), (), "", "It is. **Lesson:** [07](../07_gradient_accumulation.ipynb)")
    assert best("gradient accumulation", index_of([linked, STEP])) == [STEP]


def test_what_is_asked_of_other_entries_is_not_answered_by_these():
    assert best("grad None", index_of([GRAD])) == [GRAD]
    assert best("grad None", index_of([MEMORY, STEP])) != [GRAD]
    assert best("memory", index_of([GRAD])) == []
