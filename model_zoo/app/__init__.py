"""Shared parts of the commands: flags, the choice of a model, run folders, results."""
