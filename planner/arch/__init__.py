"""Readers of model files and the model catalog: shapes and bytes, nothing about speed."""
