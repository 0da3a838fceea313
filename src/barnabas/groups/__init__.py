"""Groups: classic and consumer protocols, and committed offsets."""
