"""models.*: the files that training produces and starts from."""
