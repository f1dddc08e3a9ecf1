"""Pages of the documentation site that are made from the planner's own data and code."""
