"""RQ-Tree: inserting entries, and splitting the cells of a list where that is cheaper (VLDBJ'17 5.1.1)."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.postings import (
    BOX,
    COUNT,
    KLASS,
    NO_RUN,
    START,
    TOP,
    WHAT,
    append,
    cut_to,
    ends_with,
    grow,
    is_full,
    pack_entry,
    swap,
    unpack_entry,
)
from nearcast.kernels.quadtree import ROOT, associate, halves, level_of, steps
from nearcast.kernels.ranked import key_of, place_of
from nearcast.kernels.rq_tree import CHILD, NO_CELL

DONE, NO_ROOM, REFUSED = range(3)  # outcomes of `split`


@kernel
def insert(tree, postings, grid, ranks, entries, chosen, desk, weight, capacity, progress):
    """Post the chosen entries, from progress = (entry, cell) on. Returns False where room ran out.

    `weight` is the cost of a copy in verifications per message. A message pays chance(key) * share(cell) for
    a posting; divided by the chance, a copy costs weight / chance. The paper gives no formula (docs/papers).
    """
    for i in range(progress[0], len(chosen)):
        entry = chosen[i]
        key, what = key_of(ranks, entries, entry)
        price = weight / ranks.chance[place_of(ranks, key)]
        whole = (np.int64(0), np.int64(0), np.int64(0), np.int64(ROOT))
        box = steps(grid, entries.boxes, entry)
        end, _ = associate(grid, box, whole, price, desk, 0)
        for j in range(progress[1], end):
            if not post(tree, postings, grid, key, pack_entry(box), what, desk, j, end, price, capacity):
                progress[0], progress[1] = i, j
                return False
        progress[1] = 0
    progress[0] = len(chosen)
    return True


@primitive
def post(tree, postings, grid, key, box, what, desk, j, end, price, capacity):
    """Put an entry where its chosen cell desk.cells[j] is, or into the leaf on the way there.

    Several chosen cells may lie in one leaf. They are neighbours in Morton order, so that the entry is then
    the leaf's last posting already. False if there is no room (nothing is changed then).
    """
    cells = tree.cells
    if tree.roots[key] == NO_CELL:
        if tree.n_cells[0] == len(cells):
            return False
        tree.roots[key] = new_cells(tree, 1)
    while True:
        at, where = walk(tree, key, desk.cells[j])
        if ends_with(postings, cells, at, what):
            return True
        if not is_full(cells, at):
            append(postings, cells, at, box, what)
            return True
        may_split = cells[at, CHILD] == NO_CELL and where[0] < grid.depth[0]
        if may_split and cells[at, COUNT] >= capacity:
            outcome = split(tree, postings, grid, at, where, desk, end, price)
            if outcome == NO_ROOM:
                return False
            if outcome == DONE:
                continue
        if not grow(postings, cells, at):
            return False


@primitive
def new_cells(tree, n):
    first = tree.n_cells[0]
    for cell in range(first, first + n):
        tree.cells[cell, START], tree.cells[cell, COUNT] = 0, 0
        tree.cells[cell, KLASS], tree.cells[cell, CHILD] = NO_RUN, NO_CELL
    tree.n_cells[0] = first + n
    return first


@primitive
def walk(tree, key, code):
    """The cell of a list's tree with this code, or the leaf on the way: (cell, (level, x, y, code))."""
    at = np.int64(tree.roots[key])
    level, x, y, here = np.int64(0), np.int64(0), np.int64(0), np.int64(ROOT)
    for shift in range(2 * level_of(code) - 2, -1, -2):
        child = np.int64(tree.cells[at, CHILD])
        if child == NO_CELL:
            break
        quadrant = (code >> shift) & 3
        at = child + quadrant
        level, x, y = level + 1, (x << 1) + (quadrant & 1), (y << 1) + (quadrant >> 1)
        here = (here << 2) + quadrant
    return at, (level, x, y, here)


@primitive
def split(tree, postings, grid, at, where, desk, first, price):
    """Give a full leaf four children if that saves more verifications than visiting a child costs (one).

    An entry moves down if some association below the leaf is cheaper than the leaf itself; room for that is
    in desk.cells from `first` on. REFUSED leaves the postings as they are but for their order; the leaf asks
    again when it has doubled.
    """
    cells, start, count = tree.cells, np.int64(tree.cells[at, START]), np.int64(tree.cells[at, COUNT])
    if tree.n_cells[0] + 4 > len(cells) or postings.state[TOP] + 8 * count + 8 > len(postings.pool):
        return NO_ROOM
    share = np.float64(grid.share[where[3]])
    n_stay, saved = np.int64(0), 0.0
    for position in range(start, start + count):
        box = unpack_entry(postings.pool[position, BOX])
        _, cost = associate(grid, box, where, price, desk, first)
        if cost < share + price:
            saved += share + price - cost
        else:
            swap(postings, start + n_stay, position)
            n_stay += 1
    if saved <= share:
        return REFUSED
    child = new_cells(tree, 4)
    for position in range(start + n_stay, start + count):
        move_down(postings, cells, child, where, position)
    cut_to(postings, cells, at, n_stay)
    cells[at, CHILD] = child
    return DONE


@primitive
def move_down(postings, cells, child, where, position):
    """Copy a posting to every child that its box meets. `split` has made sure that there is room."""
    word, what = postings.pool[position, BOX], postings.pool[position, WHAT]
    west, south, east, north = unpack_entry(word)
    x0, x1 = halves(west, east, where[0], where[1])
    y0, y1 = halves(south, north, where[0], where[2])
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            at = child + 2 * y + x
            if is_full(cells, at):
                grow(postings, cells, at)
            append(postings, cells, at, word, what)
