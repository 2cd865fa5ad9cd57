"""`scan`: every wish against every message."""

from __future__ import annotations

from nearcast.kernels import rank_scan
from nearcast.kernels.rank_layout import Candidates
from nearcast.ranking.base import Ranker


class Scan(Ranker):
    """No structure at all."""

    name = "scan"

    def _probe(self, first_post: int, row: int, last_row: int, room: Candidates) -> tuple[int, int]:
        wants, theta = self.table.wants, self.table.buffers.theta
        following, n = rank_scan.probe_all(wants, theta, self.store.posts, first_post, row, last_row, room, self._space)
        self._counters[0] += self.table.n_live * (following - row)
        self._counters[2] += self.table.n_live * (following - row)
        return following, n
