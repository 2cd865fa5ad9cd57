"""The API, one file a noun."""
