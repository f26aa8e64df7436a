"""Each module is a part that `--part` names: `run(scratch: Path) -> Iterator[Row]`, in a folder it has for itself."""
