"""Rates to throttle times: what clients and addresses take, held against their quotas (KIP-13, 124, 599, 612)."""
