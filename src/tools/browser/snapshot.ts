/**
 * Snapshots: a tab's document and the frames in it as lines of text with references. References are numbers that rise
 * over the life of the browser: an element keeps its number, and no number is used for two elements.
 */
import { z } from 'zod'
import { CdpError } from './cdp.ts'
import type { Documents, Frame } from './documents.ts'
import type { Tab } from './tab.ts'

/** Deep enough for a payment form in a widget in a page. Deeper frames are not read. */
const MAX_DEPTH = 4
const MAX_FRAMES = 20
const MAX_RANGES = 2_000
/** Maximum number of references that one document may take, whatever it answers. */
const MAX_REFS = 100_000

export interface Snapshot {
  readonly lines: readonly string[]
  /** There was more than `room` allowed. */
  readonly truncated: boolean
}

export interface Snapshots {
  /** The document in which a reference was given out. */
  frameOf(ref: number): Frame | undefined
  /** `room`: maximum length in characters. */
  snapshot(tab: Tab, room: number): Promise<Snapshot>
}

const SNAPSHOT = z.object({
  lines: z.array(z.string()),
  frames: z.array(z.object({ line: z.int(), ref: z.int(), depth: z.int() })),
  truncated: z.boolean(),
  next: z.int(),
})

interface Budget {
  frames: number
}

export function createSnapshots(documents: Documents): Snapshots {
  let ranges: { readonly from: number; readonly to: number; readonly frame: Frame }[] = []
  let next = 1

  async function readFrame(frame: Frame, room: number, budget: Budget, depth: number): Promise<Snapshot> {
    const first = next
    await documents.keepAccessibilityTree(frame)
    const found = await documents.call(frame, 'snapshot', { next: first, room }, SNAPSHOT)
    // Two snapshots at once would give out the same numbers; the tool runs one action at a time.
    next = Math.max(next, Math.min(found.next, first + MAX_REFS))
    if (next > first) ranges.push({ from: first, to: next, frame })
    if (ranges.length > MAX_RANGES) ranges = ranges.slice(-MAX_RANGES / 2)
    let { truncated } = found
    const lines: string[] = []
    let left = room - lengthOf(found.lines)
    for (const [at, line] of found.lines.entries()) {
      lines.push(line.slice(0, 4_000))
      const inner = found.frames.find((each) => each.line === at)
      if (!inner || depth >= MAX_DEPTH || budget.frames-- <= 0) continue
      const below = await readInnerFrame(frame, inner.ref, left, budget, depth)
      const indent = '  '.repeat(Math.min(20, inner.depth))
      const indented = (below?.lines ?? []).map((each) => indent + each)
      lines.push(...indented)
      left -= lengthOf(indented)
      truncated ||= below?.truncated ?? false
    }
    return { lines, truncated }
  }

  /** Undefined for a frame that can't be read, because it is being replaced or blocked. */
  async function readInnerFrame(frame: Frame, ref: number, room: number, budget: Budget, depth: number) {
    if (room < 200) return { lines: [], truncated: true }
    try {
      const inner = await documents.frameIn(frame, ref)
      return inner && (await readFrame(inner, room, budget, depth + 1))
    } catch (error) {
      if (error instanceof CdpError && error.code !== 'closed') return undefined
      throw error
    }
  }

  return {
    frameOf: (ref) => ranges.findLast(({ from, to }) => ref >= from && ref < to)?.frame,
    snapshot: (tab, room) => readFrame(documents.main(tab), room, { frames: MAX_FRAMES }, 0),
  }
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0)
}
