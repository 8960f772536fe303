"""Evaluation: sections of a config file, ledgers of episodes, engines that carry them out."""
