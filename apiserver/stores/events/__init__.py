"""Where events are kept: one protocol, and the engines that fulfil it."""
