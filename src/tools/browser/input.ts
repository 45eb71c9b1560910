/** Mouse and keyboard input, and the choice of options. A Refusal's message is for the model. */
import { z } from 'zod'
import type { Cdp } from './cdp.ts'
import type { Documents, Frame } from './documents.ts'
import { type KeyStroke, keyStroke } from './keys.ts'
import type { Tab } from './tab.ts'

/** The action is not possible. The message explains the reason to the model. Nothing was changed. */
export class Refusal extends Error {}

/** An element, and the document that it is in. */
export interface Target {
  readonly ref: number
  readonly frame: Frame
}

interface Point {
  readonly x: number
  readonly y: number
}

const LOCATED = z.object({ problem: z.string() }).or(z.object({ x: z.number(), y: z.number() }))
const BOX = z
  .object({ problem: z.string() })
  .or(z.object({ left: z.number(), top: z.number(), width: z.number(), height: z.number() }))
const POINT = z.object({ x: z.number(), y: z.number() })
const FOCUSED = z.object({
  problem: z.string().optional(),
  done: z.boolean().optional(),
  empty: z.boolean().optional(),
})
const CHOSEN = z.object({ problem: z.string().optional(), chosen: z.array(z.string()).optional() })

/** All reject with Refusal or CdpError. */
export interface Input {
  click(target: Target, double: boolean): Promise<void>
  hover(target: Target): Promise<void>
  /** Replaces the content of the field with the text. */
  type(target: Target, text: string): Promise<void>
  press(tab: Tab, key: string): Promise<void>
  /** Returns the labels that are selected afterwards. */
  select(target: Target, text: string): Promise<readonly string[]>
  /** Scrolls the element into view and returns its box within the tab's viewport. */
  boxOf(target: Target): Promise<{ x: number; y: number; width: number; height: number }>
}

export function createInput(cdp: Cdp, page: Documents): Input {
  async function locate(target: Target): Promise<Point> {
    await reveal(page, target.frame)
    const found = await page.call(target.frame, 'locate', { ref: target.ref, force: false }, LOCATED)
    return 'problem' in found ? refuse(target, found.problem) : toTab(page, target.frame, found)
  }

  function mouse(tab: Tab, type: string, at: Point, more = {}): Promise<unknown> {
    return cdp.call('Input.dispatchMouseEvent', { session: tab.session, params: { type, ...at, ...more } })
  }

  async function keyDownAndUp(session: string, { key, code, keyCode, text, modifiers }: KeyStroke): Promise<void> {
    const common = { key, code, windowsVirtualKeyCode: keyCode, modifiers }
    const down = { type: text === undefined ? 'rawKeyDown' : 'keyDown', ...common, ...(text !== undefined && { text }) }
    const commands = modifiers === 2 && keyCode === 65 ? { commands: ['selectAll'] } : {}
    await cdp.call('Input.dispatchKeyEvent', { session, params: { ...down, ...commands } })
    await cdp.call('Input.dispatchKeyEvent', { session, params: { type: 'keyUp', ...common } })
  }

  return {
    async click(target, double) {
      const at = await locate(target)
      const { tab } = target.frame
      await mouse(tab, 'mouseMoved', at)
      for (const clickCount of double ? [1, 2] : [1]) {
        await mouse(tab, 'mousePressed', at, { button: 'left', buttons: 1, clickCount })
        await mouse(tab, 'mouseReleased', at, { button: 'left', clickCount })
      }
    },
    async hover(target) {
      await mouse(target.frame.tab, 'mouseMoved', await locate(target))
    },
    async type(target, text) {
      const { frame, ref } = target
      const focused = await page.call(frame, 'focus', { ref, text }, FOCUSED)
      if (focused.problem !== undefined) refuse(target, focused.problem)
      if (focused.done) return
      if (text !== '') await cdp.call('Input.insertText', { session: frame.session, params: { text } })
      else if (!focused.empty) await keyDownAndUp(frame.session, keyStroke('Delete')!)
    },
    async press(tab, key) {
      const stroke = keyStroke(key)
      if (!stroke) throw new Refusal(`There is no key ${JSON.stringify(key.slice(0, 40))}.`)
      await keyDownAndUp(tab.session, stroke)
    },
    async select(target, text) {
      const { problem, chosen = [] } = await page.call(target.frame, 'select', { ref: target.ref, text }, CHOSEN)
      if (problem !== undefined) refuse(target, problem)
      return chosen
    },
    async boxOf(target) {
      await reveal(page, target.frame)
      const found = await page.call(target.frame, 'locate', { ref: target.ref, force: true }, BOX)
      if ('problem' in found) return refuse(target, found.problem)
      const { x, y } = await toTab(page, target.frame, { x: found.left, y: found.top })
      return { x, y, width: found.width, height: found.height }
    },
  }
}

export function goneMessage(ref: number): string {
  return `There is no [e${ref}] on the page any more: the page changed. Take a snapshot and use its references.`
}

function refuse({ ref }: Target, problem: string): never {
  throw new Refusal(problem === 'gone' ? goneMessage(ref) : `[e${ref}] ${problem}.`)
}

/** Converts a frame's own coordinates to those of its tab. */
async function toTab(page: Documents, frame: Frame, point: Point): Promise<Point> {
  let { x, y } = point
  for (let at = frame.within; at; at = at.frame.within) {
    const origin = await page.call(at.frame, 'frameOrigin', at.ref, POINT)
    x += origin.x
    y += origin.y
  }
  return { x, y }
}

/** Scrolls the frame elements around a document into view, the outermost first. */
async function reveal(page: Documents, frame: Frame): Promise<void> {
  if (!frame.within) return
  await reveal(page, frame.within.frame)
  await page.call(frame.within.frame, 'reveal', frame.within.ref, z.unknown())
}
