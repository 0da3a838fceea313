"""Consumer groups: their states, their members, the offsets that they commit."""
