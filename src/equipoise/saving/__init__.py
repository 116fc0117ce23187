"""Save the state of methods and of running fits to files, and read it back, without pickle."""
