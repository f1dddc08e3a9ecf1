"""Adapters of the serving engines: who answers, what it counts, and requests to it."""
