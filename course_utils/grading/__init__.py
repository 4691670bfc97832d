"""Grading a class: submissions are found, read, run, judged, kept and told, each folder with a trust of its own.

`intake` takes in what nobody trusts, as bytes. `controller` holds the cases and judges, and runs nothing of a
learner's. `sandbox` runs beside a learner's code, and knows no answer. `outgoing` tells results. Controller and sandbox
say to each other what `wire` defines, and share nothing else. SECURITY.md says what this keeps off.
"""
