"""Building the verification kernel for a plan: search, compile, check, write."""
