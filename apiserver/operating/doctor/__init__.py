"""`apiserver doctor`: says what is kept, checks it, and mends what can be mended."""
