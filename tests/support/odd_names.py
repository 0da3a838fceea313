"""Names of directories that Spark and delta-rs could take for something else."""

#: Spaces, what URLs escape and divide, and what Spark takes for patterns.
ODD = "a b%20c #1 50% ü+&=;,'()@$!~ [x] {y,z} q? s*"
#: The same, without what delta-rs cannot read.
ODD_WITH_TABLES = "a b #1 50% ü+&=;,'()@$!~ {y,z} q? s*"
