"""Jobs: episodes of any policy in any Gymnasium environment, with the same records and statistics as driving."""
