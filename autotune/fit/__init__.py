"""Fits the constants of the cost model to published timings and measurements; run by hand."""
