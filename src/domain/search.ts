/**
 * Searches for any number of needles at once, in linear time for any text and needles (Aho–Corasick). Texts are sequences of
 * units: bytes, or the UTF-16 units of a string. `indexOf` and regular expressions take quadratic time for hostile texts.
 */

export type Units = Uint8Array | Uint16Array

/** A part of a text that consists of needles; overlapping needles form one span. In units; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
  /** The part before it was reported with an earlier piece. */
  readonly continues: boolean
}

export interface Scan {
  /**
   * Takes the next piece of the text. Positions count from the first unit that was not clear before. `clear` is the number
   * of decided units. The rest may begin a needle; the caller must hold it until the next piece or the end.
   */
  feed(piece: Units): { readonly clear: number; readonly spans: readonly Span[] }
  /** Ends the text: the spans in what was held. */
  end(): readonly Span[]
}

export interface Search {
  /**
   * Takes a text piece by piece and calls `found` for each end of a needle, in order, with the longest needle that ends
   * there. Positions count from the beginning of the text.
   */
  start(found: (start: number, end: number) => void): (piece: Units) => void
  /** Returns a scan that reports spans. */
  scan(): Scan
}

/** UTF-16 units of a string. */
export function unitsOf(text: string): Uint16Array {
  const bytes = Buffer.from(text, 'utf16le')
  return bytes.byteOffset % 2 === 0
    ? new Uint16Array(bytes.buffer, bytes.byteOffset, text.length)
    : new Uint16Array(Uint8Array.from(bytes).buffer)
}

/** Takes time and about 22 bytes of memory for each unit of the needles. */
export function createSearch(needles: readonly Units[]): Search {
  const trie = buildTrie(needles.filter(({ length }) => length > 0))
  return {
    start: (found) => createWalk(trie, found).take,
    scan: () => createScan(trie),
  }
}

/**
 * State 0 is the root. Children are a list: `child` is the first, `sibling` the next. 0 ends a list. Few states have more
 * than one child; which of them is meant is looked up in `others`.
 */
interface Trie {
  readonly unit: Uint16Array
  readonly child: Int32Array
  readonly sibling: Int32Array
  /** By `keyOf` of the parent and the unit. */
  readonly others: Map<number, number>
  /** The state of the longest proper suffix. */
  readonly fail: Int32Array
  readonly depth: Int32Array
  /** Length of the longest needle that is a suffix; 0 where none is. */
  readonly longest: Int32Array
  /** The root may have many children: their lists, by the low byte of their unit. */
  readonly first: Int32Array
}

function buildTrie(needles: readonly Units[]): Trie {
  const size = needles.reduce((sum, { length }) => sum + length, 1)
  const integers = () => new Int32Array(size)
  const trie: Trie = {
    ...{ unit: new Uint16Array(size), child: integers(), sibling: integers(), fail: integers() },
    ...{ depth: integers(), longest: integers(), first: new Int32Array(256), others: new Map() },
  }
  let states = 1
  for (const needle of needles) {
    let state = 0
    for (const unit of needle) {
      let next = childOf(trie, state, unit)
      if (next === 0) {
        next = states++
        trie.unit[next] = unit
        trie.depth[next] = trie.depth[state]! + 1
        addChild(trie, state, next)
      }
      state = next
    }
    trie.longest[state] = needle.length
  }
  link(trie, states)
  return trie
}

function addChild(trie: Trie, parent: number, state: number): void {
  const unit = trie.unit[state]!
  const [list, at] = parent === 0 ? [trie.first, unit & 255] : [trie.child, parent]
  const first = list[at]!
  if (first === 0) {
    list[at] = state
    return
  }
  trie.sibling[state] = trie.sibling[first]!
  trie.sibling[first] = state
  trie.others.set(keyOf(parent, unit), state)
}

function keyOf(state: number, unit: number): number {
  return state * 0x10000 + unit
}

/** Sets `fail`, and `longest` of what ends with a shorter needle; breadth first, so that shorter suffixes are done. */
function link(trie: Trie, states: number): void {
  const queue = new Int32Array(states)
  let filled = 0
  const push = (list: number) => {
    for (let state = list; state !== 0; state = trie.sibling[state]!) queue[filled++] = state
  }
  trie.first.forEach(push)
  for (let at = 0; at < filled; at++) {
    const parent = queue[at]!
    for (let state = trie.child[parent]!; state !== 0; state = trie.sibling[state]!) {
      trie.fail[state] = step(trie, trie.fail[parent]!, trie.unit[state]!)
    }
    push(trie.child[parent]!)
    if (trie.longest[parent] === 0) trie.longest[parent] = trie.longest[trie.fail[parent]!]!
  }
}

function childOf(trie: Trie, state: number, unit: number): number {
  const first = state === 0 ? trie.first[unit & 255]! : trie.child[state]!
  if (first === 0 || trie.unit[first] === unit) return first
  return trie.sibling[first] === 0 ? 0 : (trie.others.get(keyOf(state, unit)) ?? 0)
}

function step(trie: Trie, state: number, unit: number): number {
  for (;;) {
    const next = childOf(trie, state, unit)
    if (next !== 0 || state === 0) return next
    state = trie.fail[state]!
  }
}

interface Walk {
  take(piece: Units): void
  /** Units that were taken, and how many at their end begin a needle. */
  position(): { readonly taken: number; readonly begun: number }
}

function createWalk(trie: Trie, found: (start: number, end: number) => void): Walk {
  let state = 0
  let taken = 0
  return {
    take(piece) {
      for (let at = 0; at < piece.length; at++) {
        state = step(trie, state, piece[at]!)
        const length = trie.longest[state]!
        if (length > 0) found(taken + at + 1 - length, taken + at + 1)
      }
      taken += piece.length
    },
    position() {
      let open = state
      while (open !== 0 && trie.child[open] === 0) open = trie.fail[open]!
      return { taken, begun: trie.depth[open]! }
    },
  }
}

function createScan(trie: Trie): Scan {
  /** Number of clear units. */
  let clear = 0
  /** In order; the first may have begun in what is clear. */
  let spans: { start: number; end: number }[] = []
  const walk = createWalk(trie, (start, end) => {
    let from = start
    while (spans.length > 0 && spans.at(-1)!.end > start) from = Math.min(from, spans.pop()!.start)
    spans.push({ start: from, end })
  })

  function clearUpTo(end: number): Span[] {
    const base = clear
    const ready = spans.filter(({ start }) => start < end)
    spans = spans.filter((span) => span.end > end)
    clear = end
    return ready.map((span) => ({
      start: Math.max(span.start, base) - base,
      end: Math.min(span.end, end) - base,
      continues: span.start < base,
    }))
  }

  return {
    feed(piece) {
      walk.take(piece)
      const base = clear
      const { taken, begun } = walk.position()
      return { spans: clearUpTo(taken - begun), clear: taken - begun - base }
    },
    end: () => clearUpTo(walk.position().taken),
  }
}
