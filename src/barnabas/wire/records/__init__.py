"""Record batches (magic 2): headers read in place, records encoded and decoded, compression."""
