"""What a link, or a table, cannot make the studio do: read other files, run code, or take dates for classes."""

from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest

from equipoise.studio.data_sources import DataSources
from equipoise.studio.limits import Limits
from equipoise.studio.page.link import View, from_query, to_query


def test_classes_of_a_table_are_no_dates_or_identifiers_and_have_names(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(300).astype("timedelta64[D]")
    rows = [f"{i},{i % 7},{('x', 'y', '')[i % 3]},cell {i},{day}" for i, day in enumerate(days)]
    (tmp_path / "t.csv").write_text("a,b,kind,id,day\n" + "\n".join(rows))
    found = DataSources(tmp_path, Limits()).load("file:t.csv")
    assert found.classes == ("missing", "x", "y") and found.labels[:3].tolist() == [1, 2, 0]
    (tmp_path / "ids.csv").write_text("a,b,id\n" + "\n".join(f"{i},{i % 7},cell {i}" for i in range(300)))
    assert DataSources(tmp_path, Limits()).load("file:ids.csv").labels is None


@pytest.mark.parametrize(
    "name",
    [
        "file:/etc/passwd", "file:../t.csv", "file:..%2ft.csv", "file:~/t.csv", "file:t.csv/../../t.csv",
        "file:C:\\t.csv",
        "file:t.npy\0.csv", "file:http://evil.example/t.csv", "named:../t.csv", "named:t.csv", "named:/etc/passwd",
        "given:t.csv", "http://evil.example/t.csv", "/etc/passwd", "__import__('os').system('true')", "file:pickle.npy",
    ],
)  # fmt: skip
def test_link_cannot_read_other_files_or_run_code(tmp_path, name):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    folder = tmp_path / "studio"
    folder.mkdir()
    ran = tmp_path / "ran"
    np.save(folder / "pickle.npy", np.array([Payload(ran)], dtype=object), allow_pickle=True)
    view = from_query(to_query(View(name)))
    assert view.data == name
    tables = DataSources(folder, Limits())
    with pytest.raises(ValueError):
        tables.load(view.data)
    exec(compile(tables.code(name), "code", "exec"), {"data": SimpleNamespace(load=Table, read=Table)})
    assert not ran.exists()


class Payload:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.touch, ()


class Table:
    """Stands for what `data.load` and `data.read` return: the copied Python calls them with a text, and no more."""

    def __init__(self, name):
        assert isinstance(name, str)
        self.X = None


@pytest.mark.parametrize("value", ["1e400", "-1", "__import__('os')", "1;2", "0x10", "9" * 5000, "1_000", "\u0661"])
def test_values_in_a_link_are_numbers_in_range(value):
    with pytest.raises(ValueError):
        from_query(urlencode({"perplexity": value}))
    with pytest.raises(ValueError):
        from_query(urlencode({"changes": f"5:perplexity:{value}"}))


def test_active_run_of_a_link_exists():
    assert from_query("b.method=umap&active=1").active == 1
    with pytest.raises(ValueError, match="active=1 in the link must be less than the number of runs, 1"):
        from_query("active=1")
