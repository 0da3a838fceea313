"""What jobs share: the Spark session and the client."""
