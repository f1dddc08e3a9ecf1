"""Kernels that do one thing, to find out how fast a card does it."""
