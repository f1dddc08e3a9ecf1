"""Commands that the package adds to the `planner` command line; the only ones here that print."""
