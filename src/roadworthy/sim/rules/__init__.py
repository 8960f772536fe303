"""The rules of the simulator, one file each: scalar functions of one agent, pair or world."""
