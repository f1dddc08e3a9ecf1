"""Verification kernels; knows nothing of the planner."""
