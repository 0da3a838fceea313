"""Assignors that run on the broker: pure functions of who subscribes to what and who has what."""
