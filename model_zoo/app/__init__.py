"""What the commands share: flags, the choice of a model, run folders, results."""
