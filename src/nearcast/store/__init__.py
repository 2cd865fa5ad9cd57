"""The store: the truth that an index is rebuilt from, and the log that deliveries are rebuilt from.

`sqlite:///path` (the default of the service), `postgresql://…`, or `memory:`. Nothing here stores deliveries:
whoever was away is served by matching the log again (DESIGN: replay without stored deliveries).
"""

from __future__ import annotations

from nearcast.store.access import ApiKeys, Webhooks
from nearcast.store.database import VERSION, Database, StoreError
from nearcast.store.followers import Followers
from nearcast.store.log import Log
from nearcast.store.opening import open_database
from nearcast.store.truth import Cursors, Settings, Subscriptions
from nearcast.store.wishes import Wishes

__all__ = ["Store", "StoreError", "open_store"]


class Store:
    """All that is kept, by noun. Every change is on disk when its call returns."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.settings = Settings(database)
        found = self.settings.get("", "version")
        if found is None:
            self.settings.put("", {"version": str(VERSION).encode()})
        elif int(found) != VERSION:
            database.close()
            raise StoreError(f"a store of version {int(found)} found; this nearcast reads version {VERSION}")
        self.log = Log(database)
        self.subscriptions = Subscriptions(database)
        self.wishes = Wishes(database)
        self.followers = Followers(database)
        self.cursors = Cursors(database)
        self.api_keys = ApiKeys(database)
        self.webhooks = Webhooks(database)

    @property
    def beside(self) -> str | None:
        """Path of the database file, where files may lie beside it; None: memory, or on another machine."""
        return self._database.folder

    def close(self) -> None:
        self._database.close()


def open_store(url: str) -> Store:
    """The store at this address; made if it is not there. One process at a time can write to it."""
    return Store(open_database(url))
