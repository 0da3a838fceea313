"""HTTP servers of the console and the schema registry: uvicorn, with limits."""
