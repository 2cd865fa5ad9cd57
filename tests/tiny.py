"""Indexes with tiny parameters, so that small random worlds already split, merge and overflow everything."""

from __future__ import annotations

from typing import Any

TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny strata": ("strata", {"leaf": 4, "fanout": 4, "small": 0, "chunk": 3}),
    "tiniest strata": ("strata", {"leaf": 2, "fanout": 4, "small": 2, "chunk": 1, "heavy": 2}),
    "odd strata": ("strata", {"leaf": 5, "fanout": 7, "small": 8, "chunk": 2, "heavy": 1}),
    "tiny ap-tree": ("ap-tree", {"f": 3, "theta_p": 2}),
    "tiny ap-tree optimal": ("ap-tree", {"f": 3, "theta_p": 2, "keyword_partition": "optimal", "theta_kl": 0.0}),
    "tiny ap-tree keyword": ("ap-tree", {"f": 2, "theta_p": 2, "priority": "keyword"}),
    "tiny ap-tree space": ("ap-tree", {"f": 4, "theta_p": 2, "priority": "space"}),
    "tiny ap-tree published": ("ap-tree", {"f": 2, "theta_p": 2, "order": "frequent", "recut": False, "theta_kl": 0.0}),
    "tiny trie-quadtree": ("ap-tree", {"f": 2, "theta_p": 2, "trie_quadtree": True}),
    "one leaf ap-tree": ("ap-tree", {"theta_p": 100_000}),
    "tiny spatial-first": ("spatial-first", {"b": 2, "B": 4}),
    "tiny ir-tree": ("ir-tree", {"b": 2, "B": 4}),
    "tiny rt": ("rt", {"b": 2, "B": 4}),
    "tiny rt+": ("rt+", {"b": 2, "B": 4, "tokens": "df"}),
    "tiny rt++": ("rt++", {"b": 2, "B": 4, "grid": 2}),
    "tiny mbr-trie": ("mbr-trie", {"order": "alphabetical"}),
    "frequent mbr-trie": ("mbr-trie", {"order": "frequent", "probe": "trie"}),
    "tiny pt-quadtree": ("pt-quadtree", {"tau_num": 2, "tau_area": 4.0**-6}),
    "tiny mx-cif": ("pt-quadtree", {"tau_num": 2, "tau_area": 4.0**-6, "lists": "mx-cif"}),
    "tiny lfilter": ("lfilter", {"tau_num": 2, "tau_area": 4.0**-6, "k": 1}),
    "pruning lfilter": ("lfilter", {"tau_num": 3, "verification": "lists", "lists": "mx-cif", "k": 0}),
    "tiny iq-tree": ("iq-tree", {"depth": 2, "update_weight": 1e-9}),
    "tiny rq-tree": ("rq-tree", {"depth": 3, "capacity": 2, "update_weight": 1e-9}),
}

TINY_MOVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny strata-move": ("strata-move", {"fill": 1, "strata": {"leaf": 2, "fanout": 4, "small": 2, "chunk": 1}}),
    "split strata-move": ("strata-move", {"fill": 2, "strata": {"leaf": 2, "fanout": 4, "small": 0, "heavy": 1}}),
    "tiny iq+": ("iq+", {"depth": 3}),
    "tiny rq+": ("rq+", {"depth": 3}),
    "tiny ss": ("ss", {"depth": 2}),
    "tiny kk": ("kk", {"depth": 2}),
    "tiny ap+": ("ap+", {"f": 3, "theta_p": 2, "limit": 3}),
    "tiny ap+ wide": ("ap+", {"f": 4, "theta_p": 1, "limit": 200, "theta_kl": 0.0}),
    "tiny ap+ space": ("ap+", {"f": 3, "theta_p": 2, "messages": "space"}),
}
