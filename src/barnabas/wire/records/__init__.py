"""Record batches (magic 2): headers, records, compression."""
