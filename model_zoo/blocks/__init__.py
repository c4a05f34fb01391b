"""The base of the families' blocks: graphs, files, precision, attention heads."""
