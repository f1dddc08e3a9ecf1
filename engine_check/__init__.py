"""Engines judge the files that the planner writes for them; see docs/engine-check.md."""
