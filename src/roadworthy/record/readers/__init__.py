"""Readers: logs of other tools, as rows with the fields that Roadworthy's own rows have."""
