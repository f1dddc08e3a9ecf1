"""Requests to an OpenAI-compatible endpoint, bounded in number, size and time."""
