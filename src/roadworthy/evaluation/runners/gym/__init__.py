"""Run episodes in Gymnasium environments, single or vector."""
