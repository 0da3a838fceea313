"""Measures rates of clients and addresses and throttles them by their quotas (KIP-13, 124, 599, 612)."""
