"""One contestant each: a script that runs in its own interpreter and obeys `bench.worker`."""
