"""The scrub job: every batch of every replica checked."""
