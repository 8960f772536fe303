"""Evaluates the sections of a file in a process of its own, for tests that kill it: FILE OUT POLICY."""

from __future__ import annotations

import sys

from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.sections import chosen, read_sections

if __name__ == "__main__":
    source, out, policy = sys.argv[1:]
    outcomes = evaluate_sections(chosen(read_sections(source)), policy, out)
    for outcome in outcomes:
        sys.stderr.write(f"{outcome.name}: {outcome.error}\n")
    sys.exit(0 if all(outcome.is_complete for outcome in outcomes) else 1)
