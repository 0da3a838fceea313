"""The most expensive requests that a client can send, and how long they delay others."""
