"""A simulator: whole brokers on virtual time, with a network and disks that fail, repeatable from a seed."""
