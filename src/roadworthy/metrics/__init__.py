"""What is measured of driving, beyond what the simulator counts itself."""
