"""Planner for speculative decoding: does it pay here, with which drafter and draft length."""

__version__ = "0.1.0"
