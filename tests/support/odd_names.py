"""Directory names that Spark and delta-rs could misinterpret."""

#: Spaces, characters that URLs escape or use as delimiters, and characters of Spark's glob patterns.
ODD = "a b%20c #1 50% ü+&=;,'()@$!~ [x] {y,z} q? s*"
#: The same, without characters that delta-rs cannot read.
ODD_WITH_TABLES = "a b #1 50% ü+&=;,'()@$!~ {y,z} q? s*"
