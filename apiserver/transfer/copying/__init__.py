"""Copies all data from one pair of stores to another, on any engines. An interrupted copy can be started again."""
