"""A folder of images of one size: a row of pixels each, the subfolder as the class."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from ..._types import Array
from ..dataset import Dataset
from .broken import decoding
from .wanted import Wanted, classes_of

SUFFIXES = (".png", ".jpg", ".jpeg")
GREY = ("1", "L", "LA")  # Pillow's modes of 8 bits or fewer without colour


def read_images(path: Path, wanted: Wanted) -> Dataset:
    """Return the pixels (n, height · width) of grey images, or (n, height · width · 3) of colour, from 0 to 255.

    Images are in the order of their names, which are the `ids`; a subfolder is the class of those in it. Hidden files
    are left out.
    """
    source = str(path)
    wanted.refuse(source, "a folder of images")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and _is_shown(file, path))
    if not files:
        raise ValueError(f"{source}: the folder holds no images ({', '.join(SUFFIXES)}) and is no Zarr store")
    first = _pixels(files[0])
    X = np.empty((len(files), first.size), dtype=np.uint8)
    for i, file in enumerate(files):
        pixels = _pixels(file)
        if pixels.shape != first.shape:
            raise ValueError(
                f"{file} is {_words(pixels)}, but {files[0]} is {_words(first)}; images of one size and kind are needed"
            )
        X[i] = pixels.ravel()
    places = [file.relative_to(path) for file in files]
    folders = [place.parts[0] if len(place.parts) > 1 else "" for place in places]
    labels, classes = classes_of(np.array(folders, dtype=object)) if any(folders) else (None, ())
    ids = np.array([place.as_posix() for place in places], dtype=object)
    return Dataset(path.resolve().name, X, labels, classes, (), ids)


def _is_shown(file: Path, path: Path) -> bool:
    """Return whether a file is one and neither it nor a folder above it is hidden."""
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)


def _pixels(file: Path) -> Array:
    from PIL import Image

    with decoding(str(file), "an image"), warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(file, formats=("PNG", "JPEG")) as image:
            if image.mode.startswith("I"):  # 16 bits; Pillow's own conversion cuts off all above 255
                return (np.asarray(image) // 257).astype(np.uint8)
            return np.asarray(image.convert("L" if image.mode in GREY else "RGB"))


def _words(pixels: Array) -> str:
    height, width = pixels.shape[:2]
    return f"{width} × {height} in {'grey' if pixels.ndim == 2 else 'colour'}"
