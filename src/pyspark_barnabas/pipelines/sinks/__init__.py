"""Where batches go: each sink writes a batch once, however often it is asked to."""
