"""Benchmarks of TLS, logins and ACLs: `make bench-tls`."""
