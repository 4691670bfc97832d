"""The exercises of each lesson: cases, judges, misconceptions and hints. No learner code runs here."""
