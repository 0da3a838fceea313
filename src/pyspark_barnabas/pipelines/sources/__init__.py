"""Tables that flows read: what was added to them since, each row once."""
