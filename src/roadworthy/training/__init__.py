"""Learning: rollouts of an env with a policy, PPO on them, checkpoints along the way."""
