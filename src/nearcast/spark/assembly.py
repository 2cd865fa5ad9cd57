"""From parts to a plan (on the driver: words and sizes, nothing else), and from the plan to the shards (anywhere)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import indexes, snapshot
from nearcast.columns import MessageBatch
from nearcast.columns.parts import join_columns, owners_of, take_subscriptions, with_terms
from nearcast.lexicon import Lexicon
from nearcast.spark.edge import Refused
from nearcast.spark.layouts import AUTO, REPLICATED
from nearcast.spark.parts import Part, load_part
from nearcast.spark.plan import BYTES_AN_ENTRY, REPLICATE_UP_TO, Plan, as_posts, make_plan, rarest
from nearcast.spark.reader import MessageReader
from nearcast.spark.routes import Entries, Posts
from nearcast.spark.storage import Manifest, Settings, ids_to_arrays, save_lexicon, save_rejected

Sample = Callable[[], Iterable[pa.RecordBatch]]
"""Asked for only where messages matter to the choice."""


def assemble(
    folder: Path,
    names: Sequence[str],
    settings: Settings,
    rejected: int,
    *,
    layout: str = AUTO,
    shards: int = 2,
    replicate_up_to: int = REPLICATE_UP_TO,
    sample: Sample = tuple,
) -> Manifest:
    """Join the words, drop ids that were given twice, make the plan. The shards are built next, then `save`."""
    parts = [load_part(folder, name, settings) for name in names]
    first = _first_ones([part.ids for part in parts])
    twice = [
        Refused(f"id: {_shown(part.ids[row])} given; another row has it already", "")
        for part, kept in zip(parts, first, strict=True)
        for row in np.flatnonzero(~kept).tolist()
    ]
    save_rejected(folder, "given-twice", twice)
    lexicon, term_of = _joined_words(parts, settings.analyzer)
    batches = sample() if layout != REPLICATED and not _fits(parts, layout, replicate_up_to) else ()
    history = _history(batches, lexicon, settings)
    plan = _plan(parts, first, term_of, lexicon, history, layout, shards, replicate_up_to)
    save_lexicon(folder, lexicon)
    _save(folder, plan, term_of, _split(plan.kept, first), history)
    limited = any(np.isfinite(part.most).any() for part in parts)
    count = int(sum(kept.sum() for kept in first))
    return Manifest(folder.name, settings, count, rejected + len(twice), plan.kept.shape[1], limited, plan.report)


def build_shard(folder: Path, names: Sequence[str], settings: Settings, shard: int) -> tuple[int, int, int]:
    """Write a shard's index and subscriptions; how many subscriptions, entries and bytes it has."""
    arrays, _ = snapshot.load(folder / "assembly")
    parts = [load_part(folder, name, settings) for name in names]
    kept = [arrays[f"kept_{i}"][:, shard] for i in range(len(parts))]
    taken = [
        with_terms(take_subscriptions(part.columns, chosen), arrays[f"term_of_{i}"])
        for i, (part, chosen) in enumerate(zip(parts, kept, strict=True))
    ]
    columns = join_columns(taken, settings.space)
    history = MessageBatch.from_flat(*(arrays[f"history_{name}"] for name in Posts._fields))
    index = indexes.build(settings.index, columns, history if len(history) else None)
    at = folder / f"shard-{shard:03d}"
    index.save(at / "index")
    ids = pa.concat_arrays([part.ids.filter(pa.array(chosen)) for part, chosen in zip(parts, kept, strict=True)])
    snapshot.save(
        at / "subscriptions",
        ids_to_arrays(ids, settings.ids)
        | {
            "expires": np.concatenate([part.expires[chosen] for part, chosen in zip(parts, kept, strict=True)]),
            "most": np.concatenate([part.most[chosen] for part, chosen in zip(parts, kept, strict=True)]),
            "live": np.ones(len(columns), np.bool_),
            "kept": np.concatenate([arrays[f"kept_{i}"][chosen] for i, chosen in enumerate(kept)]),
        },
        {},
    )
    report = index.report()
    return len(columns), report.entries, report.bytes_total


def _first_ones(ids: Sequence[pa.Array]) -> list[NDArray[np.bool_]]:
    """By part: which rows are the first of their id."""
    codes = np.asarray(pa.chunked_array(ids).combine_chunks().dictionary_encode().indices, np.int64)
    first = np.zeros(len(codes), np.bool_)
    first[np.unique(codes, return_index=True)[1]] = True
    return np.split(first, np.cumsum([len(part) for part in ids])[:-1])


def _shown(identity: pa.Scalar) -> str:
    return repr(identity.as_py())


def _joined_words(parts: Sequence[Part], analyzer: str) -> tuple[Lexicon, list[NDArray[np.int32]]]:
    lexicon = Lexicon(analyzer)
    return lexicon, [np.array(lexicon.intern_all(part.words.to_pylist()), np.int32) for part in parts]


def _fits(parts: Sequence[Part], layout: str, replicate_up_to: int) -> bool:
    return layout == AUTO and sum(len(p.columns.boxes) for p in parts) * BYTES_AN_ENTRY <= replicate_up_to


def _history(batches: Iterable[pa.RecordBatch], lexicon: Lexicon, settings: Settings) -> Posts:
    """The sampled messages as rows; their words are counted in the lexicon."""
    reader = MessageReader(lexicon, settings.space)
    found = [posted.batch for batch in batches for posted in reader.read(batch)[0]]
    for batch in found:
        lexicon.count(batch.terms_once(), len(batch))
    lengths = [np.diff(batch.term_from) for batch in found]
    return Posts(
        np.concatenate([np.zeros((0, 4)), *(batch.boxes for batch in found)]),
        np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *(batch.terms for batch in found)]),
    )


def _plan(
    parts: Sequence[Part],
    first: Sequence[NDArray[np.bool_]],
    term_of: Sequence[NDArray[np.int32]],
    lexicon: Lexicon,
    history: Posts,
    layout: str,
    shards: int,
    replicate_up_to: int,
) -> Plan:
    entries = _entries(parts, first, term_of, lexicon)
    count = int(sum(kept.sum() for kept in first))
    posts = history if len(history.boxes) else as_posts(entries)
    return make_plan(entries, posts, len(lexicon), count, layout=layout, shards=shards, replicate_up_to=replicate_up_to)


def _entries(
    parts: Sequence[Part],
    first: Sequence[NDArray[np.bool_]],
    term_of: Sequence[NDArray[np.int32]],
    lexicon: Lexicon,
) -> Entries:
    """All entries of all parts, with terms of the common lexicon; the key is the rarest in the sampled messages,
    then in the entries themselves."""
    taken = [
        with_terms(take_subscriptions(part.columns, kept), names)
        for part, kept, names in zip(parts, first, term_of, strict=True)
    ]
    every = join_columns(taken, taken[0].space)
    used = np.bincount(every.terms, minlength=len(lexicon))
    order = np.lexsort((used, lexicon.frequencies))
    weight = np.empty(len(lexicon), np.int64)
    weight[order] = np.arange(len(lexicon))
    key = rarest(every.term_from, every.terms, weight)
    return Entries(every.boxes, every.term_from, every.terms, key, owners_of(every).astype(np.int64))


def _split(kept: NDArray[np.bool_], first: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    """Flags of the subscriptions that count, to those of all rows of each part."""
    flags, at = [], 0
    for chosen in first:
        part = np.zeros((len(chosen), kept.shape[1]), np.bool_)
        n = int(chosen.sum())
        part[chosen] = kept[at : at + n]
        flags.append(part)
        at += n
    return flags


def _save(
    folder: Path,
    plan: Plan,
    term_of: Sequence[NDArray[np.int32]],
    kept: Sequence[NDArray[np.bool_]],
    history: Posts,
) -> None:
    arrays = {f"term_of_{i}": names for i, names in enumerate(term_of)}
    flags = {f"kept_{i}": part for i, part in enumerate(kept)}
    past = {f"history_{name}": array for name, array in history._asdict().items()}
    snapshot.save(folder / "assembly", {**arrays, **flags, **past}, {})
    if plan.route is not None:
        meta, state = plan.route.state()
        snapshot.save(folder / "route", {str(i): array for i, array in enumerate(state)}, meta)
