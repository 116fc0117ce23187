"""What each rank of `equipoise embed DATA --ranks N` runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .. import progress
from .._warn import UnfinishedWarning
from ..distributed import Group
from .embed import read_checkpoints
from .embed_ranks import embed
from .method_options import given_parameters, make_method
from .parser import parse


def embed_rank(group: Group, words: Sequence[str]) -> None:
    """Embed the data of a command line, the words after `equipoise`, as one rank."""
    args = parse(words)
    method = make_method(args, given_parameters(args))
    with warnings.catch_warnings(), progress.shown(group.rank == 0) as bars:
        warnings.simplefilter("ignore", UnfinishedWarning)
        embed(group, args, method, read_checkpoints(args, method), bars)
