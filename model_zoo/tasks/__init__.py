"""The tasks: each package reads its files, makes features and batches, and evaluates."""
