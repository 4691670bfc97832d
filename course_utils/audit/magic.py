"""`%%audit`: watch a cell of a notebook."""

from __future__ import annotations

from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring


def register(ipython: Any) -> None:
    """Give an IPython shell the cell magic `%%audit`."""

    @magic_arguments()  # type: ignore[untyped-decorator]
    @argument("--strict", action="store_true", help="raise where something likely was found")  # type: ignore[untyped-decorator]
    @argument("--steps", type=int, default=20, help="optimizer steps to watch closely")  # type: ignore[untyped-decorator]
    def audit(line: str, cell: str) -> None:
        """Run a cell, watched for mistakes that raise no error, and print what was found below its output."""
        from course_utils.audit.report import AuditFailed
        from course_utils.audit.watch import audit as watching

        options = parse_argstring(audit, line)
        with watching(steps=options.steps) as report:
            done = ipython.run_cell(cell, store_history=False)
            report.interrupted = not done.success
        print(report)
        if options.strict and done.success and report.failing(strict=True):
            raise AuditFailed(report)

    ipython.register_magic_function(audit, "cell", "audit")


def unregister(ipython: Any) -> None:
    """Take `%%audit` away again."""
    ipython.magics_manager.magics["cell"].pop("audit", None)
