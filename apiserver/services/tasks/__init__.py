"""tasks.*: runs of training and other programs."""
