"""Files, threads, devices, progress and figures: nothing here knows of models."""
