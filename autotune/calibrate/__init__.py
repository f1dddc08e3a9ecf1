"""Measures the machine that is here and writes what the planner may use in place of its priors."""
