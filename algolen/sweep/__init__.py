"""Many runs as one study: read from a file, planned, shared among any number of processes; recipes chosen by trials."""
