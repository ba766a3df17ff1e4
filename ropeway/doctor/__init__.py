"""Checks of a store and its queues: what is wrong, and what to do about it. They change nothing."""
