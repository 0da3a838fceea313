"""The scrub job: checks every batch of every replica."""
