"""What the machines of a job had to do: resource series (node, device, quantity, unit) of its monitor scalars."""
