"""What the two scripts share: `models`, and `training`."""
