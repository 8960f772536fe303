"""Traffic: drivers, cyclists and pedestrians that follow driving rules in a network."""
