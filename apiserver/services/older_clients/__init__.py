"""Requests and answers of older API versions, made from those of the newest."""
