"""Traffic: drivers, cyclists and pedestrians who move through a network by rules of their own."""
