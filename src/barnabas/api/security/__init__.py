"""Authentication, ACLs and SCRAM users."""
