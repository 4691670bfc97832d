"""A finding: one mistake that a watch saw."""

from __future__ import annotations

import linecache
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from course_utils.ask.codes import asked
from course_utils.explain.explanation import Place, located, marked

# error: an effect was seen, and it is wrong. likely: it happened throughout, and is a mistake unless it was meant.
# note: worth knowing.
Level: TypeAlias = Literal["error", "likely", "note"]
LEVELS: tuple[Level, ...] = ("error", "likely", "note")


@dataclass(frozen=True)
class Finding:
    """One mistake: where, how often, why it matters and what to change.

    `file` and `line` are the learner's; the file is empty and the line 0 where no line can be named. `where` holds the
    other lines that belong to it: made there, used there. `names` are the learner's names of what it is about.
    `certain` says that the cause was proved and not only its effect seen. `section` names the notebook and heading
    that teach it.
    """

    code: str
    level: Level
    file: str
    line: int
    headline: str
    why: str
    fix: str
    certain: bool
    section: str
    times: int
    names: tuple[str, ...] = ()
    where: tuple[Place, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the fields that `course audit --json` writes."""
        fields = {name: value for name, value in asdict(self).items() if name != "names"}
        return {**fields, "where": list(fields["where"])}

    def __str__(self) -> str:
        where = located(Place("", self.file, self.line, "")) if self.file else "no single line"
        text = linecache.getline(self.file, self.line).strip()
        rows = [f"{self.level}[{self.code}] {self.headline}", f"  --> {where}"]
        if text:
            rows.append(f"   |  {text}")
        rows += marked(self.where)
        rows.append(f"  why: {self.why}")
        fix = self.fix.replace("\n", "\n       ")
        rows.append(f"  fix{'' if self.certain else ' (probable)'}: {fix}")
        rows.append(
            f"  seen {self.times} times; taught in {self.section}" if self.times > 1 else f"  taught in {self.section}"
        )
        rows += [f"  {line}" for line in filter(None, [asked(self.code)])]
        return "\n".join(rows)
