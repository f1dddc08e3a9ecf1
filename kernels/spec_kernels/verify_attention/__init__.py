"""Attention of 1+D query tokens of each sequence over a paged KV cache: kernel and reference."""
