"""The evaluators that come with Roadworthy, each found through the entry point group `roadworthy.evaluators`."""
