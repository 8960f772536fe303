"""Results of other tools: import them as run folders, and check logs and runs for order and stopping bias."""
