"""Several processes that train one model together, each on its share of every batch. Torch does the work.

`torchrun` starts the processes and `torch.distributed` connects them. Whatever depends on how many there are is here:
`World` is a process alone, to which every question has a plain answer, and `Group` is one of several.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, RegardError, TrainingError
from regard.text.batching.rank_split import Share
from regard.training.losses.cross_entropy import Carried, Loss, Objective
from regard.training.torchrun import is_one_of_several

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

T = TypeVar("T")
Tensors = Mapping[str, Tensor]
Compute = Callable[[Any, float, Carried], Loss]
"""(batch, smoothing, what the batch before carried) -> its loss."""

FOLLOWED = 69
"""The exit code of a process that ends because another one failed, which has said why."""

_ASKING = 0.02  # seconds between two looks at whether the leader has spoken
_BEHIND = 2.0  # seconds that a process outlives the one that failed, which torchrun then takes for the cause


class World:
    """One process, alone."""

    rank, size = 0, 1
    shard = False
    """Whether each process holds only a part of the weights, and of what Adam remembers of them."""

    @property
    def leads(self) -> bool:
        """Whether this process validates, writes files and speaks to people."""
        return self.rank == 0

    @property
    def share(self) -> Share:
        """What this process reads of every batch."""
        return Share(self.rank, self.size)

    @property
    def processes(self) -> str:
        """How many there are, for a message, if there are several."""
        return f"{self.size} processes{' that share the weights' if self.shard else ''}, each " if self.size > 1 else ""

    def told(self, make: Callable[[], T]) -> T:
        """What the leader makes, which all processes learn of; plain data that JSON can hold."""
        return make()

    def total(self, number: float) -> float:
        """The sum of all processes' numbers."""
        return number

    def agree(self, stop: bool, seconds: float) -> tuple[bool, float]:
        """Whether anyone wants to stop, and the time on the leader's clock."""
        return stop, seconds

    def seed(self, *choices: int) -> list[int]:
        """A seed for each process: without it all would drop the same numbers."""
        return list(choices)

    def device(self, device: torch.device) -> torch.device:
        """Where this process computes."""
        return device

    def compute(self, model: nn.Module, objective: Objective, blocks: list[nn.Module]) -> Compute:
        """How to compute a loss whose gradient, after `backward`, is the mean over all processes."""
        return lambda batch, smoothing, carried: objective(model, batch, smoothing, carried)

    def summing(self, compute: Compute, *, last: bool) -> AbstractContextManager[None]:
        """Around all but the `last` of the batches that make one update: their gradients need not travel yet."""
        return nullcontext()

    def whole(self, tensors: Tensors) -> Tensors:
        """Tensors of which every process may hold a part, put together for the leader."""
        return tensors

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """Of a whole tensor, what this process holds of `like`."""
        return tensor

    def divided(self, compute: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """What `compute` makes of rows that all processes have alike: each computes some of them, and all get all."""
        return compute(rows)

    def join_rows(self, part_DBW: Tensor, rows: int) -> Tensor:
        """What all processes carry, of which `rows` rows of ours count."""
        return part_DBW

    def part_rows(self, whole_DBW: Tensor) -> Tensor:
        """Our rows of what all processes carry."""
        return whole_DBW


class Group(World):
    """One of several processes: under DDP each holds all weights, under FSDP2 (`shard`) a part of each."""

    def __init__(self, store: "Store", rank: int, size: int, *, shard: bool = False) -> None:
        self.rank, self.size, self.shard = rank, size, shard
        self._store = store
        self._said = 0

    def told(self, make: Callable[[], T]) -> T:
        # Through the store and not a broadcast: the leader may take hours to prepare a text.
        self._said += 1
        key = f"told {self._said}"
        if self.leads:
            made = make()
            self._store.set(key, json.dumps(made))
            return made
        while not self._store.check([key]):
            if self._store.check(["failed"]):
                _follow()
            time.sleep(_ASKING)
        told: T = json.loads(self._store.get(key))
        return told

    def total(self, number: float) -> float:
        return float(self._sum([number])[0])

    def agree(self, stop: bool, seconds: float) -> tuple[bool, float]:
        stops, clock = self._sum([float(stop), seconds if self.leads else 0.0])
        return stops > 0, clock

    def _sum(self, numbers: list[float]) -> list[float]:
        summed = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(summed)
        found: list[float] = summed.tolist()
        return found

    def seed(self, *choices: int) -> list[int]:
        return [*choices, self.rank] if self.rank else [*choices]

    def device(self, device: torch.device) -> torch.device:
        if device.type == "mps":
            raise ConfigError("Several processes cannot share one Apple GPU. Use --device cpu.")
        if device.type != "cuda":
            return device
        own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        if own.index >= torch.cuda.device_count():
            raise ConfigError(f"There are {torch.cuda.device_count()} GPUs for more processes. Start one for each.")
        torch.cuda.set_device(own)
        return own

    def compute(self, model: nn.Module, objective: Objective, blocks: list[nn.Module]) -> Compute:
        computing = _Computing(model, objective)
        if self.shard:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh(next(model.parameters()).device.type, (self.size,))
            for block in blocks:
                fully_shard(block, mesh=mesh)
            fully_shard(computing, mesh=mesh)
            return computing
        ddp = nn.parallel.DistributedDataParallel
        # Our buffers are tables that each process makes for itself; how to say so changed in torch 2.13.
        tables = "forward_sync_buffers" if "forward_sync_buffers" in signature(ddp).parameters else "broadcast_buffers"
        # Told to look for unused weights, DDP never sorts its buckets anew. After a restart it would have to do so
        # again, and the sums of three or more processes would be added up in another order than without the restart.
        chosen: dict[str, Any] = {"find_unused_parameters": True, "gradient_as_bucket_view": True, tables: False}
        return ddp(computing, **chosen)

    @contextmanager
    def summing(self, compute: Compute, *, last: bool) -> Iterator[None]:
        if isinstance(compute, nn.parallel.DistributedDataParallel):
            with nullcontext() if last else compute.no_sync():
                yield
            return
        compute.set_requires_gradient_sync(last)  # type: ignore[attr-defined]
        yield

    def whole(self, tensors: Tensors) -> Tensors:
        if not self.shard:
            return tensors
        gathered = {}
        for name, tensor in tensors.items():
            one = whole(tensor.detach())
            if self.leads:
                gathered[name] = one.cpu()
        return gathered

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        from torch.distributed.tensor import DTensor, distribute_tensor

        if not isinstance(like, DTensor):
            return tensor
        # Every process has read the whole tensor, so that nothing needs to be sent.
        return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)

    def divided(self, compute: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        ours = self.share.block(len(rows))
        computed = compute(rows[ours])
        whole = computed.new_zeros(len(rows), *computed.shape[1:])
        whole[ours] = computed
        torch.distributed.all_reduce(whole)  # a sum with zeros, so exactly what each has computed
        return whole

    def join_rows(self, part_DBW: Tensor, rows: int) -> Tensor:
        D, _, W = part_DBW.shape
        count = int(self.total(rows))
        whole_DBW = part_DBW.new_zeros(D, count, W)
        whole_DBW[:, self.share.block(count)] = part_DBW[:, :rows]
        torch.distributed.all_reduce(whole_DBW)
        return whole_DBW

    def part_rows(self, whole_DBW: Tensor) -> Tensor:
        ours_DBW = whole_DBW[:, self.share.block(whole_DBW.shape[1])]
        return ours_DBW if ours_DBW.shape[1] else whole_DBW[:, :1]


class _Computing(nn.Module):
    """Model and objective as one module: it begins and ends with a step, which is when torch exchanges weights."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any, smoothing: float, carried: Carried) -> Loss:
        total, after = self.objective(self.model, batch, smoothing, carried)
        # Some losses count more than words to predict; of a batch that left us no text, nothing counts.
        return Loss(total if batch.numbers else 0 * total, after)


def whole(tensor: Tensor) -> Tensor:
    """A tensor that may be spread over processes, put together in each of them; all must ask."""
    gather: Callable[[], Tensor] | None = getattr(tensor, "full_tensor", None)
    return gather() if gather else tensor


@contextmanager
def joined(*, shard: bool = False) -> Iterator[World]:
    """Connect with the other processes, if there are any. Whichever fails first is the one that says why."""
    if not is_one_of_several():
        yield World()
        return
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all on one machine: nobody else needs to reach us
    store, rank, size = next(iter(rendezvous("env://")))
    store = PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)  # not what was said before
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        dist.init_process_group(backend, store=PrefixStore("group", store), rank=rank, world_size=size)
        yield Group(store, rank, size, shard=shard)
    except Exception as error:
        _fail(store, rank, error)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _follow() -> NoReturn:
    time.sleep(_BEHIND)
    raise SystemExit(FOLLOWED)


def _fail(store: "Store", rank: int, error: Exception) -> None:
    """Say what went wrong, unless another process went wrong before: then this error only follows from that one."""
    if store.add("failed", 1) > 1:
        _follow()
    where = f"Process {rank} on {socket.gethostname()}"
    if isinstance(error, RegardError):
        error.args = (f"{where}: {error}",)
        raise error
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error):
        advice = "Lower train.batch_tokens and raise train.accumulate, spread the weights with --shard, or use a smaller --size"
        raise TrainingError(f"{where} is out of memory. {advice}.") from None
    if "Connection" in str(error) or "closed by peer" in str(error):
        raise TrainingError(
            f"{where} lost another process, which ended without a word (killed, or out of memory). The same command goes on "
            "from the last checkpoint; --max-restarts N does so by itself."
        ) from None
    print(f"regard: {where} failed. Please report this:", file=sys.stderr)
    raise error
