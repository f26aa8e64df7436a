"""Several training processes on this machine, started and watched by torch's own launcher.

They find each other through a rendezvous that listens on the loopback interface alone. For a run that `torchrun` starts it
can be chosen too: `torchrun --rdzv-backend loopback --nproc-per-node 2 -m regard train ...`.
"""

import logging
import os
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta

from torch._C._distributed_c10d import TCPStore  # where its types are told; torch.distributed names it too
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from regard.errors import ConfigError, TrainingError
from regard.training.distributed import FOLLOWED
from regard.training.rendezvous import BACKEND, make

HOST = "127.0.0.1"


class Loopback(RendezvousHandler):
    """A store that only processes of this machine can reach. There is one launcher, so nobody needs to be waited for."""

    def __init__(self, parameters: RendezvousParameters) -> None:
        if parameters.max_nodes > 1:
            raise ConfigError(f"The rendezvous {BACKEND} is for one machine. Use --rdzv-backend c10d for several.")
        self._run = parameters.run_id

    def get_backend(self) -> str:
        return BACKEND

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        listener = socket.create_server((HOST, 0))
        port = int(listener.getsockname()[1])
        # Torch would listen on all interfaces; given our listener, it does on that alone. After a restart nothing is
        # left of what was stored before.
        self._store = TCPStore(
            HOST,
            port,
            is_master=True,
            wait_for_workers=False,
            timeout=timedelta(minutes=10),
            master_listen_fd=listener.detach(),
        )
        return RendezvousInfo(PrefixStore(self._run, self._store), 0, 1, RendezvousStoreInfo(HOST, port))

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None:
        """Nobody else can come."""

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self._run

    def shutdown(self) -> bool:
        return True


def launch(processes: int, arguments: Sequence[str], *, restarts: int = 0) -> int:
    """Run `regard` with these arguments in so many processes; the exit code of the first that failed, else 0."""
    # What went wrong the processes say themselves.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    rendezvous_handler_registry.register(BACKEND, make)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id="regard",
        rdzv_backend=BACKEND,
        rdzv_endpoint=HOST,
        local_addr=HOST,
        max_restarts=restarts,
        signals_to_handle="SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1",  # passed on to all
    )
    try:
        elastic_launch(config, sys.executable)("-m", "regard", *arguments)
    except SignalException as stopped:
        return 128 + int(stopped.sigval)
    except ChildFailedError as failed:
        rank, failure = min(failed.failures.items(), key=lambda item: item[1].exitcode == FOLLOWED)
        if failure.exitcode < 0:
            raise TrainingError(
                f"Process {rank} was ended by {failure.signal_name()}. The same command goes on from the last checkpoint; "
                "--max-restarts N does so by itself."
            ) from None
        return int(failure.exitcode)
    return 0
