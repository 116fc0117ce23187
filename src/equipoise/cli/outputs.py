"""Where results go: files that can be written are known before the work starts, and are written whole or not at all."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .._atomic import atomic_write
from .._optional import import_optional
from ..data import DATASETS, check_map_path
from .options import STDIN

FORMATS = ("csv", "tsv", "parquet", "npy", "h5ad")
PLOTS = ("png", "svg", "html")
STDOUT = "-"


@dataclass(frozen=True)
class Outputs:
    """The file of a map, None for standard output, and those of its pictures."""

    map: Path | None
    format: str
    pictures: tuple[Path, ...]

    @property
    def files(self) -> list[Path]:
        """All of them."""
        return [path for path in (self.map, *self.pictures) if path is not None]


def in_words(files: Sequence[Path]) -> str:
    """Return names of files as a list in words."""
    *first, last = map(str, files)
    return f"{', '.join(first)} and {last}" if first else last


def tell_written(files: Sequence[Path], say: Callable[[str], None] = print) -> None:
    """Say which files were written, if any were."""
    if files:
        say(f"wrote               {in_words(files)}")


def add_outputs(verb: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that say where a map goes and in which form; return their group."""
    group = verb.add_argument_group("outputs")
    group.add_argument(
        "--out",
        metavar="PATH",
        default=".",
        help=f"a folder, for NAME.csv and NAME.png (default: here); a file, .{', .'.join(FORMATS)}, for the map alone;"
        " or - for the map on standard output; a new folder with a dot in its name ends in /",
    )
    group.add_argument("--format", choices=FORMATS, help="of the map (default: csv, or as the file is called)")
    group.add_argument(
        "--plot",
        metavar="FORMAT",
        type=_plots,
        help="of the picture beside the map: png, svg, html, several between commas, or none (default: png in a"
        " folder, else none)",
    )
    return group


def choose_outputs(args: argparse.Namespace, name: str) -> Outputs:
    """Return where the map of a data set called `name` goes, or say why it cannot go there. Nothing is written yet."""
    # table.csv may be the user's own
    stem = name if args.data in DATASETS else "map" if args.data == STDIN else f"{name}-map"
    if args.out == STDOUT:
        if args.plot:
            raise ValueError("--plot needs a place for the picture: --out FOLDER, or --out FILE, but not --out -")
        check_map_path(f"map.{args.format or 'csv'}")
        return Outputs(None, args.format or "csv", ())
    out = Path(args.out)
    suffix = out.suffix[1:].lower()
    if suffix in FORMATS and not out.is_dir():
        if args.format not in (None, suffix):
            raise ValueError(f"--format {args.format} contradicts the name {out.name!r}; leave one of them out")
        outputs = Outputs(out, suffix, tuple(out.with_suffix(f".{plot}") for plot in args.plot or ()))
    else:
        if suffix and out.suffix[1:] in PLOTS:
            raise ValueError(f"--out takes a folder or the file of a map; for a picture say --plot {suffix}")
        if suffix and not out.is_dir() and not args.out.endswith(("/", os.sep)):
            known = ", ".join(f".{format}" for format in FORMATS)
            raise ValueError(
                f"--out {args.out}: no map is written as .{suffix}; give a file that ends in one of {known}, or a"
                f" folder, {args.out}/"
            )
        if out.exists() and not out.is_dir():
            raise ValueError(f"{str(out)!r} is a file; --out takes a folder, or the file of a map, as map.csv")
        format, plots = args.format or "csv", ("png",) if args.plot is None else args.plot
        outputs = Outputs(out / f"{stem}.{format}", format, tuple(out / f"{stem}.{plot}" for plot in plots))
    for path in outputs.files:
        check_writable(path)
    if any(path.suffix == ".html" for path in outputs.pictures):
        need_pages()
    check_map_path(f"map.{outputs.format}")  # its packages are there; the folder may still have to be made
    return outputs


def check_writable(path: Path) -> None:
    """Raise unless a file of this name can be written; folders on the way to it may be missing."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; a file is to be written there")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file; a folder is needed there for {path.name!r}")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ValueError(f"nothing can be written in the folder {str(folder)!r}: {error.strerror}") from None


def writable(text: str) -> Path:
    """Return the path of a file that can be written; for options."""
    path = Path(text)
    try:
        check_writable(path)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return path


def need_pages() -> None:
    """Raise before any work if the package is missing that makes pages."""
    import_optional("bokeh", "pages", "a page")


def _plots(text: str) -> Sequence[str]:
    plots = () if text == "none" else tuple(text.split(","))
    for plot in plots:
        if plot not in PLOTS:
            raise argparse.ArgumentTypeError(f"{plot!r} is none of {', '.join(PLOTS)}")
    return plots


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole, in a folder that is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
