"""The simulator: many worlds side by side, every rule a plain function."""
