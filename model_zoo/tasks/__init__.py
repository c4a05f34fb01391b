"""The tasks, a module for each: how rows are read, encoded, learned, scored and predicted."""
