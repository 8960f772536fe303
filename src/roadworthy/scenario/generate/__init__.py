"""The generator: road networks, traffic on them, and the behaviour classes that are staged there."""
