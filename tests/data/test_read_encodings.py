"""Text tables in encodings other than UTF-8."""

import io

import numpy as np
import pytest

from equipoise import data


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "UTF-8", "utf-16-le"])
def test_a_named_encoding_is_read(encoding, tmp_path):
    text = "city,a,b\nM\u00fcnchen,1,2\n\u00c9vian,3,4\n"
    found = data.read(io.BytesIO(text.encode(encoding)), encoding=encoding, id="city")
    assert list(found.ids) == ["M\u00fcnchen", "\u00c9vian"] and found.X.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"0x81 is not valid cp1252; .* \(--encoding cp1252\)"):
        data.read(io.BytesIO(b"a,b\n1,\x81\n"), encoding="cp1252")
    with pytest.raises(ValueError, match="unknown encoding 'base64'; use a name such as 'utf-8'"):
        data.read(io.BytesIO(b"a,b\n1,2\n"), encoding="base64")
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(ValueError, match="encoding applies to CSV and TSV only; omit it"):
        data.read(tmp_path / "x.npy", encoding="cp1252")
