"""The filter and update dialect by itself, engine-neutral: what is valid, and what it means for one document."""
