"""What is measured: one part for each file, run by `python -m bench --part NAME`."""
