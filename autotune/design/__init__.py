"""Sampling a design space that is too large to go through."""
