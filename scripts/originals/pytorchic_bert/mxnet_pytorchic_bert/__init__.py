"""Modules that the two scripts share: `models`, and `training`."""

import model_zoo  # noqa: F401  before MXNet
