"""One extension of every kind for Roadworthy."""
