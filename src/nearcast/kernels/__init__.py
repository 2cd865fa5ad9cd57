"""Compiled code over flat arrays. Imports only NumPy, the standard library and this package."""
