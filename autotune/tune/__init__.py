"""Measures the arms of a plan on a live engine and says which one to run."""
