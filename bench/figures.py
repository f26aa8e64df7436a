"""How numbers are written."""


def figure(value: float) -> str:
    """A number with as many digits as mean something; very large ones in thousands of millions."""
    if value >= 1e9:
        return f"{value / 1e9:,.0f} G"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
