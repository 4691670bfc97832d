"""Right answers with one thing changed, made by rule from their syntax trees: each is killed, or decided to be right.

`python -m tests.mutation walk` (or `01` for a lesson; `--list`, `--killed`, `--only TEXT`, `--seed`, `--jobs`) makes
the mutants of every right answer in tests/answers, judges each in a forked process as `check` would, and prints those
that pass.

How to work an exercise off:

1. Run it, and read each survivor beside the task's text in the master notebook.
2. Does some input that the text allows tell the mutant from a right answer? Then it is a hole: let the scene hold that
   input (it serves every answer), or the observer see what it did, and the judge say it, in a sentence that is true of
   every answer that fails so. Prefer a change to a case that is there over another case: verdicts stay fast. Where the
   text does not decide, mend the text first.
3. If not, it is a right answer: list its key under EQUIVALENT in the exercise's file in tests/answers, with the
   sentence of the task that leaves it open, or the reason that no input can tell.
4. `python -m tests.mutation walk --open` takes decided keys out of open.txt; `python -m tests.mutation.seeds walk` says
   whether right answers still pass, and wrong ones fail alike, with 25 seeds. Then tests/checks/test_exercises.py.

`open.txt` holds the survivors that nobody has decided yet, so that a new one fails the suite today. When it is empty it
goes.

No mutation library serves: Cosmic Ray and mutmut know operators, numbers and keywords, on trees of parso and LibCST,
but neither dropped statements, neighbours nor the words of autograd, and each tries a mutant by running a test command
on a changed file, not by judging it in a warm process.
"""
