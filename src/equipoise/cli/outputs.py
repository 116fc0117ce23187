"""Choose, check and write output files; paths are checked before the computation starts."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .._atomic import atomic_write
from .._optional import import_optional
from .._types import Array
from ..data import DATASETS, check_map_path
from .options import STDIN, column_names

FORMATS = ("csv", "tsv", "parquet", "npy", "h5ad")
PAGE = "html"
PLOTS = ("png", "svg", PAGE)
STDOUT = "-"


@dataclass(frozen=True)
class PageDetails:
    """Embedded columns (n,) by name, images (n, height, width[, 3]) of uint8, and lines that say what was left out."""

    columns: dict[str, Array] = field(default_factory=dict)
    images: Array | None = None
    notes: tuple[str, ...] = ()


NOTHING = PageDetails()


@dataclass(frozen=True)
class Outputs:
    """The files to write.

    Attributes
    ----------
    map : Path or None
        File of the map; None for standard output, or if only plots are written.
    format : str or None
        Format of the map; None if only plots are written.
    pictures : tuple of Path
        Files of the plots.
    details : PageDetails
        What a page shows of the data besides the columns of the map.
    """

    map: Path | None
    format: str | None
    pictures: tuple[Path, ...]
    details: PageDetails = NOTHING

    @property
    def to_stdout(self) -> bool:
        """Whether the map is written to standard output."""
        return self.map is None and self.format is not None

    @property
    def has_page(self) -> bool:
        """Whether an HTML page is written."""
        return any(path.suffix.lower() == ".html" for path in self.pictures)

    @property
    def files(self) -> list[Path]:
        """All files to write."""
        return [path for path in (self.map, *self.pictures) if path is not None]


def join_names(files: Sequence[Path]) -> str:
    """Return file names joined by commas and "and"."""
    *first, last = map(str, files)
    return f"{', '.join(first)} and {last}" if first else last


def report_written(files: Sequence[Path], show: Callable[[str], None] = print) -> None:
    """Print which files were written, if any."""
    if files:
        show(f"wrote               {join_names(files)}")


def add_outputs(verb: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of the outputs and return their group."""
    group = verb.add_argument_group("outputs")
    group.add_argument(
        "--out",
        metavar="PATH",
        default=".",
        help=f"a folder for NAME.csv and NAME.png (default: the current one); a file (.{', .'.join(FORMATS)}) for the"
        " map only; a file .html for an interactive page only; or - for standard output; if the name of a new folder"
        " contains a dot, end it with /",
    )
    group.add_argument(
        "--keep",
        metavar="A,B,…",
        type=column_names,
        help="columns that are embedded and also copied into the map, to colour it by; all for all columns",
    )
    group.add_argument("--format", choices=FORMATS, help="format of the map (default: that of the file name, or csv)")
    group.add_argument(
        "--plot",
        metavar="FORMAT",
        type=_plot_formats,
        help="formats of the plot: png, svg, html, separated by commas, or none (default: png if --out is a folder,"
        " else none)",
    )
    return group


def choose_outputs(args: argparse.Namespace, name: str) -> Outputs:
    """Return the files for the map and the plots of a data set `name`, after checking that they can be written."""
    # "-map" avoids overwriting the user's own table.csv.
    stem = name if args.data in DATASETS else "map" if args.data == STDIN else f"{name}-map"
    if args.out == STDOUT:
        if args.plot:
            raise ValueError("--plot needs --out FOLDER or --out FILE, not --out -")
        check_map_path(f"map.{args.format or 'csv'}")
        return Outputs(None, args.format or "csv", ())
    out = Path(args.out)
    suffix = out.suffix[1:].lower()
    if suffix in FORMATS and not out.is_dir():
        if args.format not in (None, suffix):
            raise ValueError(f"--format {args.format} contradicts the file name {out.name!r}; omit --format")
        outputs = Outputs(out, suffix, tuple(out.with_suffix(f".{plot}") for plot in args.plot or ()))
    elif suffix == PAGE and not out.is_dir():
        others = tuple(out.with_suffix(f".{plot}") for plot in args.plot or () if plot != PAGE)
        table = None if args.format is None else out.with_suffix(f".{args.format}")
        outputs = Outputs(table, args.format, (out, *others))
    else:
        if suffix and out.suffix[1:] in PLOTS:
            raise ValueError(f"--out takes a folder, the file of the map or a page; for a plot use --plot {suffix}")
        if suffix and not out.is_dir() and not args.out.endswith(("/", os.sep)):
            known = ", ".join(f".{format}" for format in FORMATS)
            raise ValueError(
                f"--out {args.out}: unknown format .{suffix}; choose from {known}. For a folder of this name, use"
                f" --out {args.out}/"
            )
        if out.exists() and not out.is_dir():
            raise ValueError(f"{str(out)!r} is a file; --out takes a folder, or the file of the map such as map.csv")
        format, plots = args.format or "csv", ("png",) if args.plot is None else args.plot
        outputs = Outputs(out / f"{stem}.{format}", format, tuple(out / f"{stem}.{plot}" for plot in plots))
    for path in outputs.files:
        check_writable(path)
    if outputs.has_page:
        require_bokeh()
    if outputs.format is not None:
        check_map_path(f"map.{outputs.format}")  # checks the packages; the folder may not exist yet
    return outputs


def wants_page(args: argparse.Namespace) -> bool:
    """Return whether the options request an HTML page."""
    out = Path(args.out)
    return PAGE in (args.plot or ()) or (out.suffix.lower() == f".{PAGE}" and not out.is_dir())


def check_writable(path: Path) -> None:
    """Raise ValueError if a file cannot be written to `path`; missing parent folders are allowed."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; choose another name for the file")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise ValueError(f"cannot write {path.name!r} to {str(folder)!r}, which is a file; choose a folder")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ValueError(f"cannot write to the folder {str(folder)!r}: {error.strerror}; choose another") from None


def writable(text: str) -> Path:
    """Return the path after checking that it can be written; used as an argparse type."""
    path = Path(text)
    try:
        check_writable(path)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return path


def require_bokeh() -> None:
    """Raise ImportError if Bokeh, which HTML pages need, is not installed."""
    import_optional("bokeh", "pages", "an HTML page")


def _plot_formats(text: str) -> Sequence[str]:
    plots = () if text == "none" else tuple(text.split(","))
    for plot in plots:
        if plot not in PLOTS:
            raise argparse.ArgumentTypeError(f"unknown format {plot!r}; choose from {', '.join(PLOTS)}")
    return plots


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically, creating its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
