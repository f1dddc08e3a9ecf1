"""What `planner design` does where optuna or transformers is installed: sampling, a check."""
