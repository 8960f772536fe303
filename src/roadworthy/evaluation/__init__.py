"""Evaluation: sections of a config file, ledgers of episodes, engines that run them."""
