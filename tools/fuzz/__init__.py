"""Mutated input for everything that the planner reads: `python -m tools.fuzz --help`."""
