"""Training: rollouts, PPO, checkpoints, evaluation along the way. Start reading in loop.py."""
