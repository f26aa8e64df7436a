"""Every peer beside us, in the same run: measures Regard and writes docs/benchmarks.md. No part of the package."""
