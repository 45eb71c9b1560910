/**
 * The documents of a tab: its own and those of its frames. Calls run the scripts of in-page/ in an isolated world of the
 * document: the page's scripts can neither see nor change them, only the elements that both share. Answers are untrusted
 * and checked.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type CallOptions, type Cdp, CdpError } from './cdp.ts'
import type { Tab } from './tab.ts'

/** A page that takes longer to answer is treated as busy without end. */
const ANSWER_MS = 10_000

/** A document: a tab's own, or that of a frame element in another document. */
export interface Frame {
  readonly tab: Tab
  readonly id: string
  readonly session: string
  readonly within: { readonly frame: Frame; readonly ref: number } | undefined
}

export interface Documents {
  /** Calls a function of in-page/. Rejects with CdpError. */
  call<T>(frame: Frame, name: string, argument: unknown, answer: z.ZodType<T>, timeoutMs?: number): Promise<T>
  /** The protocol's handle of an element; undefined if the element is gone. */
  objectOf(frame: Frame, ref: number): Promise<string | undefined>
  main(tab: Tab): Frame
  /** The document in a frame element; undefined if there is none. */
  frameIn(frame: Frame, ref: number): Promise<Frame | undefined>
  /** Makes Chromium keep the accessibility tree. Without it Chromium builds the tree for each element, 20 ms each. */
  keepAccessibilityTree(frame: Frame): Promise<void>
}

const WORLD = z.object({ executionContextId: z.int() })
const EVALUATED = z.object({
  result: z.object({ value: z.unknown().optional(), objectId: z.string().optional() }),
  exceptionDetails: z.unknown().optional(),
})
const DESCRIBED = z.object({ node: z.object({ frameId: z.string().max(100).optional() }) })

export function createDocuments(cdp: Cdp): Documents {
  const source = inPageSource()

  async function callFrame<T>(frame: Frame, method: string, options: CallOptions<T>): Promise<T> {
    try {
      const answer = await cdp.call(method, { ...options, timeoutMs: options.timeoutMs ?? ANSWER_MS })
      frame.tab.unresponsive = false
      return answer
    } catch (error) {
      if (error instanceof CdpError && error.code === 'timeout') frame.tab.unresponsive = true
      throw error
    }
  }

  async function evaluate(frame: Frame, name: string, argument: unknown, byValue: boolean, timeoutMs?: number) {
    const { session } = frame
    // The same name gives the same world for as long as the document exists.
    const params = { frameId: frame.id, worldName: 'errand' }
    const world = await callFrame(frame, 'Page.createIsolatedWorld', { session, params, answer: WORLD, timeoutMs })
    const expression = `(globalThis.errand ??= ${source}).${name}(${JSON.stringify(argument)})`
    const { result, exceptionDetails } = await callFrame(frame, 'Runtime.evaluate', {
      session,
      params: { expression, contextId: world.executionContextId, returnByValue: byValue, awaitPromise: true },
      answer: EVALUATED,
      timeoutMs,
    })
    if (exceptionDetails !== undefined) throw new CdpError('refused', `The page could not be inspected (${name}).`)
    return result
  }

  async function objectOf(frame: Frame, ref: number): Promise<string | undefined> {
    return (await evaluate(frame, 'element', ref, false)).objectId
  }

  return {
    objectOf,
    async call(frame, name, argument, answer, timeoutMs) {
      const { value } = await evaluate(frame, name, argument, true, timeoutMs)
      const checked = answer.safeParse(value)
      if (!checked.success) throw new CdpError('malformed', `The page’s answer to ${name} was malformed.`)
      return checked.data
    },
    main: (tab) => ({ tab, id: tab.target, session: tab.session, within: undefined }),
    async frameIn(frame, ref) {
      const objectId = await objectOf(frame, ref)
      if (objectId === undefined) return undefined
      const { session, tab } = frame
      const { node } = await cdp.call('DOM.describeNode', { session, params: { objectId }, answer: DESCRIBED })
      const id = node.frameId
      return id === undefined
        ? undefined
        : { tab, id, session: tab.sessions.get(id) ?? session, within: { frame, ref } }
    },
    async keepAccessibilityTree(frame) {
      const { session } = frame
      try {
        await callFrame(frame, 'Accessibility.enable', { session })
        await callFrame(frame, 'Accessibility.getRootAXNode', { session, params: { frameId: frame.id } })
      } catch (error) {
        if (!(error instanceof CdpError) || error.code !== 'refused') throw error
      }
    },
  }
}

/** One expression that evaluates to an object of all the functions in in-page/. */
function inPageSource(): string {
  const read = (name: string) =>
    readFileSync(join(import.meta.dirname, 'in-page', name), 'utf8')
      .replace(/^(\/\/.*\n)*;/, '')
      .trim()
  return `((elements) => ({ ...(${read('snapshot.js')})(elements), ...(${read('interact.js')})(elements) }))(${read('elements.js')})`
}
