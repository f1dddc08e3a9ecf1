"""Measuring and fitting on real machines; may need torch, scipy or a live engine."""
