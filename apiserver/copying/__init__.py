"""Moving all data from one pair of stores to another, whatever the engines; interrupted, it is simply begun again."""
