"""What services share about documents: keys, stamps, holds, what is public, the cache."""
