"""What this machine is good at: where tensors live, how precise they are, how many threads work on them."""

import torch

from regard.errors import ConfigError


def pick_device(name: str = "auto") -> torch.device:
    """`auto` is the first of cuda, mps, cpu that is there; any other name must be."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"There is no device {name!r}. Use auto, cpu, cuda, cuda:N or mps.") from None
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(device.type, False):
        raise ConfigError(f"This machine (or this build of torch) has no {device.type}. Use --device auto or cpu.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"There is no {name}; this machine has {torch.cuda.device_count()} CUDA devices, counted from 0."
        )
    return device


def fast_at_bfloat16(device: torch.device) -> bool:
    """Whether matrix products in bfloat16 are done by the hardware itself, at about twice the speed or more."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)[0] >= 8
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return False


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto`, `float32` or `bfloat16` -> the type in which matrix products are computed."""
    if name == "auto":
        name = "bfloat16" if fast_at_bfloat16(device) else "float32"
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def set_threads(threads: int) -> int:
    """Use so many CPU threads (0 = as many as torch finds cores); the number in use."""
    if threads:
        torch.set_num_threads(threads)
    return torch.get_num_threads()
