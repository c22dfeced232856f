"""Whatever strangers and users send, others are served: attacks on a served process, while somebody watches."""
