"""The machine: devices, threads, memory, files that are there whole or not at all. No machine learning."""
