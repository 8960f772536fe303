"""Who drives: networks, and the scripted experts that they are measured against."""
