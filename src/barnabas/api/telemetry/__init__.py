"""Client telemetry (KIP-714)."""
