"""What is said about an error or a silent mistake: plain data, and the card that shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One line of the learner's code and the part it plays ("saved here", "overwritten here", "needed here")."""

    role: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Explanation:
    """Why an error happened and what to change.

    `code` is stable and short; `headline` says what happened, with the learner's names; `where` holds their lines;
    `fix` is code to paste, with their names, the most frequent cause first where several are possible. `certain` is
    true only where the cause was proved. `section` names the notebook and heading that teach it, as in
    "03_graph_freeing#Heading".
    """

    code: str
    headline: str
    where: tuple[Place, ...]
    why: str
    fix: str
    certain: bool
    section: str
