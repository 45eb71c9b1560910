/**
 * A tab's document and the frames in it, as in-page.js sees them, each in an isolated world. References are numbers that
 * rise over the browser's life: an element keeps its own, and none comes to mean another element.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type CallOptions, CdpError } from './cdp.ts'
import type { Tab, Tabs } from './tabs.ts'

/** Deep enough for a payment form in a widget in a page; a page of frames without end is not followed. */
const MAX_DEPTH = 4
const MAX_FRAMES = 20
/** A page that is busy for longer is taken to be busy for ever. */
const ANSWER_MS = 10_000
const MAX_RANGES = 2_000

/** A document: a tab's own, or that of a frame element in another. */
export interface Frame {
  readonly tab: Tab
  readonly id: string
  readonly session: string
  readonly within: { readonly frame: Frame; readonly ref: number } | undefined
}

export interface Snapshot {
  readonly lines: readonly string[]
  /** More was there than `room` allowed. */
  readonly cut: boolean
}

export interface Page {
  /** Calls a function of in-page.js. Rejects with CdpError. */
  call<T>(frame: Frame, name: string, argument: unknown, answer: z.ZodType<T>, timeoutMs?: number): Promise<T>
  /** The element as an object of the protocol; undefined where it is gone. */
  objectOf(frame: Frame, ref: number): Promise<string | undefined>
  main(tab: Tab): Frame
  /** The frame in which a reference was given out. */
  frameOf(ref: number): Frame | undefined
  /** `room`: characters. */
  snapshot(tab: Tab, room: number): Promise<Snapshot>
}

const WORLD = z.object({ executionContextId: z.int() })
const EVALUATED = z.object({
  result: z.object({ value: z.unknown().optional(), objectId: z.string().optional() }),
  exceptionDetails: z.unknown().optional(),
})
const DESCRIBED = z.object({ node: z.object({ frameId: z.string().max(100).optional() }) })
const SNAPSHOT = z.object({
  lines: z.array(z.string()),
  frames: z.array(z.object({ line: z.int(), ref: z.int(), depth: z.int() })),
  cut: z.boolean(),
  next: z.int(),
})

export function createPage({ cdp }: Pick<Tabs, 'cdp'>): Page {
  const source = readFileSync(join(import.meta.dirname, 'in-page.js'), 'utf8').replace(/^(\/\/.*\n)*;/, '')
  let ranges: { readonly from: number; readonly to: number; readonly frame: Frame }[] = []
  let next = 1

  async function ask<T>(frame: Frame, method: string, options: CallOptions<T>): Promise<T> {
    try {
      const answer = await cdp.call(method, { ...options, timeoutMs: options.timeoutMs ?? ANSWER_MS })
      frame.tab.stuck = false
      return answer
    } catch (error) {
      if (error instanceof CdpError && error.code === 'silent') frame.tab.stuck = true
      throw error
    }
  }

  async function evaluate(frame: Frame, name: string, argument: unknown, byValue: boolean, timeoutMs?: number) {
    const { session } = frame
    // The same name gives the same world as long as the document lives.
    const params = { frameId: frame.id, worldName: 'errand' }
    const world = await ask(frame, 'Page.createIsolatedWorld', { session, params, answer: WORLD, timeoutMs })
    const expression = `(globalThis.errand ??= ${source.trim()}).${name}(${JSON.stringify(argument)})`
    const { result, exceptionDetails } = await ask(frame, 'Runtime.evaluate', {
      session,
      params: { expression, contextId: world.executionContextId, returnByValue: byValue, awaitPromise: true },
      answer: EVALUATED,
      timeoutMs,
    })
    if (exceptionDetails !== undefined) throw new CdpError('refused', `The page could not be looked into (${name}).`)
    return result
  }

  async function call<T>(frame: Frame, name: string, argument: unknown, answer: z.ZodType<T>, timeoutMs?: number) {
    const { value } = await evaluate(frame, name, argument, true, timeoutMs)
    const checked = answer.safeParse(value)
    if (!checked.success) throw new CdpError('malformed', `The page's ${name} was answered with nonsense.`)
    return checked.data
  }

  async function objectOf(frame: Frame, ref: number): Promise<string | undefined> {
    return (await evaluate(frame, 'element', ref, false)).objectId
  }

  function main(tab: Tab): Frame {
    return { tab, id: tab.target, session: tab.session, within: undefined }
  }

  async function frameIn(frame: Frame, ref: number): Promise<Frame | undefined> {
    const objectId = await objectOf(frame, ref)
    if (objectId === undefined) return undefined
    const { session, tab } = frame
    const { node } = await cdp.call('DOM.describeNode', { session, params: { objectId }, answer: DESCRIBED })
    const id = node.frameId
    return id === undefined ? undefined : { tab, id, session: tab.sessions.get(id) ?? session, within: { frame, ref } }
  }

  /** The tree that in-page.js asks of is made and kept: made anew for each element, it took 20 ms for each. */
  async function keepTree(frame: Frame): Promise<void> {
    const { session } = frame
    try {
      await ask(frame, 'Accessibility.enable', { session })
      await ask(frame, 'Accessibility.getRootAXNode', { session, params: { frameId: frame.id } })
    } catch (error) {
      if (!(error instanceof CdpError) || error.code !== 'refused') throw error
    }
  }

  async function look(frame: Frame, room: number, budget: { frames: number }, depth: number): Promise<Snapshot> {
    const first = next
    await keepTree(frame)
    const seen = await call(frame, 'snapshot', { next: first, room }, SNAPSHOT)
    // Two looks at once would give out the same numbers; there is one action at a time.
    next = Math.max(next, Math.min(seen.next, first + 100_000))
    if (next > first) ranges.push({ from: first, to: next, frame })
    if (ranges.length > MAX_RANGES) ranges = ranges.slice(-MAX_RANGES / 2)
    let { cut } = seen
    const lines: string[] = []
    let left = room - seen.lines.reduce((sum, line) => sum + line.length + 1, 0)
    for (const [at, line] of seen.lines.entries()) {
      lines.push(line.slice(0, 4_000))
      const inner = seen.frames.find((each) => each.line === at)
      if (!inner || depth >= MAX_DEPTH || budget.frames-- <= 0) continue
      const below = await lookInto(frame, inner.ref, left, budget, depth)
      const indent = '  '.repeat(Math.min(20, inner.depth))
      for (const each of below?.lines ?? []) lines.push(indent + each)
      left -= (below?.lines ?? []).reduce((sum, each) => sum + each.length + indent.length + 1, 0)
      cut ||= below?.cut ?? false
    }
    return { lines, cut }
  }

  /** A frame that can't be looked into (it is being replaced, or blocked) is an empty one. */
  async function lookInto(frame: Frame, ref: number, room: number, budget: { frames: number }, depth: number) {
    if (room < 200) return { lines: [], cut: true }
    try {
      const inner = await frameIn(frame, ref)
      return inner && (await look(inner, room, budget, depth + 1))
    } catch (error) {
      if (error instanceof CdpError && error.code !== 'closed') return undefined
      throw error
    }
  }

  return {
    call,
    objectOf,
    main,
    frameOf: (ref) => ranges.findLast(({ from, to }) => ref >= from && ref < to)?.frame,
    snapshot: (tab, room) => look(main(tab), room, { frames: MAX_FRAMES }, 0),
  }
}
