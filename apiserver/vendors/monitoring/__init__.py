"""How busy the machines of a job were: curves for each node, device and quantity, read from its monitor scalars."""
