"""Policies: networks, scripted experts, remote policies, and loading all of them by spec."""
