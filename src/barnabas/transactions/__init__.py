"""Transactions: producer ids, epochs, states, markers."""
