"""Records out of files and pairs into files: Parquet, CSV, NDJSON and GeoJSON, chosen by the file's ending."""

from nearcast.files.readers import open_rows
from nearcast.files.rejections import Rejections
from nearcast.files.rows import (
    MESSAGES,
    MOVES,
    RANKED_WISHES,
    SUBSCRIPTIONS,
    FileError,
    Role,
    Row,
    RowReader,
    in_batches,
)
from nearcast.files.wishes import Endings, Wishes
from nearcast.files.writers import (
    STANDARD,
    PairWriter,
    check_apart,
    complete,
    open_pairs,
    write_records,
)

__all__ = [
    "MESSAGES",
    "MOVES",
    "RANKED_WISHES",
    "STANDARD",
    "SUBSCRIPTIONS",
    "Endings",
    "FileError",
    "PairWriter",
    "Rejections",
    "Role",
    "Row",
    "RowReader",
    "Wishes",
    "check_apart",
    "complete",
    "in_batches",
    "open_pairs",
    "open_rows",
    "write_records",
]
