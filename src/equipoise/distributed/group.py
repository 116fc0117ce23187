"""Groups of ranks, and the collectives on NumPy arrays through which ranks communicate.

A program on several machines runs as `size` processes, the ranks 0, ..., size - 1, which execute the same code on
different rows. All ranks call the same collectives in the same order. Float sums are not among them, because their
last digits would depend on the number of ranks; see `blocked_sum`.
"""

from __future__ import annotations

import json
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any

import numpy as np

from .._types import Array
from .message_header import MAX_DIMENSIONS, Header, check_headers, describe_groups
from .rank_error import RankError, describe_error
from .reductions import from_integers, to_integers

DEFAULT_TIMEOUT = 300.0  # seconds


class Group(ABC):
    """Ranks that communicate by collectives on NumPy arrays.

    Every rank calls the same collectives in the same order. An array is of any dtype but object and structured ones,
    and is copied if it is not contiguous; arguments are never modified, and results are new arrays. A collective ends
    within `timeout` seconds: with its result, with the same `ValueError` on all ranks if their arrays do not fit
    together, or with a `RankError` that names the rank that failed. After a `RankError` the group cannot be used.

    Use a group in a `with` statement, and name its stages, so that an error on one rank ends the others at once:

        with current_group() as group:
            with group.stage("neighbours"):
                rows = group.all_gather(own_rows)

    Attributes
    ----------
    rank : int
        The number of this process.
    size : int
        The number of ranks.
    hosts : tuple of str
        The name of each rank's machine.
    timeout : float
        The time limit of a collective in seconds.
    failure : RankError or None
        The error that left a stage on this rank, with the name of the stage.
    """

    rank: int
    size: int
    hosts: tuple[str, ...]
    timeout: float

    def __init__(self) -> None:
        self._stages = ["start"]
        self.failure: RankError | None = None  # this rank's own

    @property
    def host(self) -> str:
        """The name of this rank's machine."""
        return self.hosts[self.rank]

    @property
    def current_stage(self) -> str:
        """The name of the innermost stage."""
        return self._stages[-1]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name what the ranks are doing, for error messages; an error that leaves the stage ends the other ranks."""
        self._stages.append(name)
        try:
            yield
        except BaseException as error:
            self._report(error)
            raise
        finally:
            self._stages.pop()

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._report(error)
        self.close()

    def close(self) -> None:  # noqa: B027
        """Leave the group; it cannot be used afterwards."""

    def all_reduce(self, array: Array, op: str = "sum") -> Array:
        """Return the sum, maximum or minimum over the ranks of each element.

        Parameters
        ----------
        array : array
            Has the same dtype and shape on all ranks. Sums are of integers, exact as long as they fit into the dtype.
            In maxima and minima of floats, NaN wins, and −0 is less than 0.
        op : {"sum", "max", "min"}, default="sum"
            The operation.

        Returns
        -------
        array
            A new array, the same on all ranks.
        """
        array = _checked(array)
        keys = to_integers(array, op)
        with self._collective("all_reduce"):
            self._exchange(Header(f"all_reduce {op}", array.dtype.str, array.shape), same="shape")
            return from_integers(self._reduce(keys, op), array.dtype, op)

    def all_gather(self, array: Array) -> list[Array]:
        """Return the arrays of all ranks, in the order of ranks.

        Parameters
        ----------
        array : array
            May differ in length along axis 0 between ranks; dtype and trailing shape are the same on all ranks.
        """
        array = _checked(array)
        with self._collective("all_gather"):
            headers = self._exchange(Header("all_gather", array.dtype.str, array.shape), same="trailing shape")
            parts = [np.empty(header.shape, array.dtype) for header in headers]
            parts[self.rank][...] = array
            self._gather([_as_bytes(part) for part in parts])
        return parts

    def all_to_all(self, arrays: Sequence[Array]) -> list[Array]:
        """Send an array to each rank, and return the array received from each rank.

        Parameters
        ----------
        arrays : sequence of array
            One for each rank, in the order of ranks. They may differ in length along axis 0; dtype and trailing shape
            are the same in all arrays on all ranks.
        """
        if len(arrays) != self.size:
            raise ValueError(f"all_to_all needs {self.size} arrays, one for each rank, got {len(arrays)}")
        sent = [_checked(array) for array in arrays]
        kinds = {(array.dtype.str, array.shape[1:], array.ndim > 0) for array in sent}
        if len(kinds) > 1 or not sent[0].ndim:
            found = ", ".join(f"{array.dtype} {array.shape}" for array in sent)
            raise ValueError(
                f"all_to_all needs arrays of one dtype and trailing shape, with at least one axis, got {found}"
            )
        header = Header("all_to_all", sent[0].dtype.str, (0, *sent[0].shape[1:]), tuple(map(len, sent)))
        width = int(sent[0].dtype.itemsize * np.prod(sent[0].shape[1:], dtype=np.int64))
        with self._collective("all_to_all"):
            rows = np.array([h.rows_for for h in self._exchange(header, same="trailing shape")], np.int64)
            received = [np.empty((n, *sent[0].shape[1:]), sent[0].dtype) for n in rows[:, self.rank]]
            received[self.rank][...] = sent[self.rank]
            np.fill_diagonal(rows, 0)  # own rows are copied, not sent
            self._swap([_as_bytes(array) for array in sent], [_as_bytes(array) for array in received], rows * width)
        return received

    def start_all_to_all(self, arrays: Sequence[Array], received: Sequence[int]) -> Callable[[], Array]:
        """Start to send an array to each rank, and return a function that waits for the rows received.

        Other collectives may be called before that function; all ranks call them in the same order.

        Parameters
        ----------
        arrays : sequence of array
            As for `all_to_all`.
        received : sequence of int
            The number of rows that each rank sends to this one.

        Returns
        -------
        finish : callable
            Returns the rows received, in the order of ranks. It must be called.
        """
        rows = np.concatenate(self.all_to_all(arrays))
        return lambda: rows

    def broadcast(self, array: Array | None, source: int = 0) -> Array:
        """Return the array of one rank on all ranks.

        Parameters
        ----------
        array : array or None
            The array on rank `source`; ignored on the others.
        source : int, default=0
            The rank whose array is returned.
        """
        if not 0 <= source < self.size:
            raise ValueError(f"source={source} is no rank; the ranks are 0 to {self.size - 1}")
        dtype, shape = "", ()
        if self.rank == source:
            if array is None:
                raise ValueError(f"broadcast: rank {source} is the source and passed None; pass an array there")
            array = _checked(array)
            dtype, shape = array.dtype.str, array.shape
        with self._collective("broadcast"):
            header = self._exchange(Header("broadcast", dtype, shape, (source,)), same="target")[source]
            result = np.empty(header.shape, np.dtype(header.dtype))
            if self.rank == source and array is not None:
                result[...] = array
            self._send_from(source, _as_bytes(result))
        return result

    def broadcast_value(self, value: Any = None, source: int = 0) -> Any:
        """Return one rank's plain Python value (what JSON can represent; tuples become lists) on all ranks."""
        encoded = _to_json(value) if self.rank == source else None
        return json.loads(self.broadcast(encoded, source).tobytes())

    def gather_values(self, value: Any) -> list[Any]:
        """Return the plain Python values (what JSON can represent; tuples become lists) of all ranks."""
        return [json.loads(part.tobytes()) for part in self.all_gather(_to_json(value))]

    def barrier(self) -> None:
        """Wait until all ranks have arrived."""
        with self._collective("barrier"):
            self._exchange(Header("barrier", "", ()), same="shape")

    def require_equal(self, name: str, value: Any) -> None:
        """Raise a ValueError that names the ranks unless `value`, a plain Python value, is the same on all ranks.

        Parameters
        ----------
        name : str
            What is compared, such as "perplexity" or "fingerprint of X"; the message begins with it.
        value : plain Python value
            What JSON can represent.
        """
        refuse_unequal(name, self.gather_values(value), self.hosts)

    def _collective(self, name: str) -> AbstractContextManager[None]:
        """Return a context for a collective; overridden where there are time limits."""
        return nullcontext()

    def _exchange(self, header: Header, same: str) -> list[Header]:
        """Exchange headers and compare them; return the headers of all ranks."""
        headers = self._headers(header)
        check_headers(headers, same)
        return headers

    def _report(self, error: BaseException) -> None:
        """Tell the other ranks that this one failed, unless it did because of another."""
        if self.failure is None and not isinstance(error, RankError):
            self.failure = RankError(self.rank, self.host, self.current_stage, describe_error(error))
            self._publish(self.failure)

    @abstractmethod
    def _publish(self, failure: RankError) -> None:
        """Tell the other ranks about a failure."""

    @abstractmethod
    def _headers(self, header: Header) -> list[Header]:
        """Return the headers of all ranks."""

    @abstractmethod
    def _reduce(self, array: Array, op: str) -> Array:
        """Return the reduction of an array of int64 or int32 over the ranks."""

    @abstractmethod
    def _gather(self, parts: list[Array]) -> None:
        """Fill `parts`, one array of bytes for each rank, of which this rank's is filled already."""

    @abstractmethod
    def _swap(self, sent: list[Array], received: list[Array], counts: Array) -> None:
        """Fill `received[i]` with what rank i sends; rank i sends `counts[i, j]` bytes to rank j."""

    @abstractmethod
    def _send_from(self, source: int, data: Array) -> None:
        """Fill `data`, an array of bytes, with that of rank `source`."""


class SingleProcess(Group):
    """A group of one rank, without PyTorch."""

    def __init__(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__()
        self.rank, self.size = 0, 1
        self.hosts = (socket.gethostname(),)
        self.timeout = checked_timeout(timeout)

    def _publish(self, failure: RankError) -> None:
        pass

    def _headers(self, header: Header) -> list[Header]:
        return [Header.decode(header.encode(1))]

    def _reduce(self, array: Array, op: str) -> Array:
        return array.copy()

    def _gather(self, parts: list[Array]) -> None:
        pass

    def _swap(self, sent: list[Array], received: list[Array], counts: Array) -> None:
        pass

    def _send_from(self, source: int, data: Array) -> None:
        pass


def checked_timeout(timeout: float) -> float:
    """Return the time limit as a float, or raise if it is not positive and finite."""
    if not (isinstance(timeout, int | float) and 0 < timeout < float("inf")):
        raise ValueError(f"timeout={timeout!r} must be a positive number of seconds")
    return float(timeout)


def refuse_unequal(name: str, values: Sequence[Any], hosts: Sequence[str]) -> None:
    """Raise a ValueError that names ranks and hosts unless the values, one for each rank, are equal."""
    if any(value != values[0] for value in values[1:]):
        different = next(rank for rank, value in enumerate(values) if value != values[0])
        raise ValueError(
            f"{name} differs between ranks: {describe_groups([_shortened(value) for value in values])}"
            f" (hosts {hosts[0]} and {hosts[different]})"
        )


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _checked(array: Array) -> Array:
    """Return the array in C order, or raise if its dtype or number of dimensions cannot be sent."""
    array = np.asarray(array, order="C")
    if array.dtype.kind not in "biufcSUMm":
        raise TypeError(f"arrays of dtype {array.dtype} cannot be sent between ranks; use numbers, strings or dates")
    if array.ndim > MAX_DIMENSIONS:
        raise ValueError(f"arrays sent between ranks have at most {MAX_DIMENSIONS} axes, got {array.ndim}")
    return array


def _as_bytes(array: Array) -> Array:
    """Return the memory of a contiguous array as bytes."""
    return array.reshape(-1).view(np.uint8)


def _to_json(value: Any) -> Array:
    try:
        return np.frombuffer(json.dumps(value).encode(), np.uint8)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"values sent between ranks are plain Python values, such as numbers, strings, lists and dicts: {error}"
        ) from error
