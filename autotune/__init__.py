"""Measuring and fitting on real machines; everything here may need torch, scipy or a live engine."""
