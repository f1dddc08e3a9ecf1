"""Programs that run inside an engine's own environment and know nothing of the planner."""
