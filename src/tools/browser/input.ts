/** What a hand does to a page: click, hover, type, press, choose. A refusal is a sentence for the model. */
import { z } from 'zod'
import { type KeyStroke, keyStroke } from './keys.ts'
import type { Frame, Page } from './page.ts'
import type { Tab, Tabs } from './tabs.ts'

/** It can't be done; `message` says why to the model. Nothing was changed. */
export class Refusal extends Error {}

/** An element, found. */
export interface Target {
  readonly ref: number
  readonly frame: Frame
}

const PLACE = z.object({ problem: z.string() }).or(z.object({ x: z.number(), y: z.number() }))
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

export interface Input {
  click(target: Target, double: boolean): Promise<void>
  hover(target: Target): Promise<void>
  /** Puts the text in the place of what stands there. */
  type(target: Target, text: string): Promise<void>
  press(tab: Tab, name: string): Promise<void>
  /** The labels that are chosen now. */
  select(target: Target, text: string): Promise<readonly string[]>
  /** Brings it into view; its box within the tab's viewport. */
  boxOf(target: Target): Promise<{ x: number; y: number; width: number; height: number }>
}

export function createInput({ cdp }: Pick<Tabs, 'cdp'>, page: Page): Input {
  function refuse({ ref }: Target, problem: string): never {
    throw new Refusal(problem === 'gone' ? gone(ref) : `[e${ref}] ${problem}.`)
  }

  /** From a frame's own coordinates to its tab's. */
  async function outward(frame: Frame, point: { x: number; y: number }): Promise<{ x: number; y: number }> {
    let { x, y } = point
    for (let at = frame.within; at; at = at.frame.within) {
      const origin = await page.call(at.frame, 'frameOrigin', at.ref, POINT)
      x += origin.x
      y += origin.y
    }
    return { x, y }
  }

  /** The frames it stands in are brought into view first, from the outermost. */
  async function reveal(frame: Frame): Promise<void> {
    if (!frame.within) return
    await reveal(frame.within.frame)
    await page.call(frame.within.frame, 'reveal', frame.within.ref, z.unknown())
  }

  async function place(target: Target): Promise<{ x: number; y: number }> {
    await reveal(target.frame)
    const found = await page.call(target.frame, 'place', { ref: target.ref, force: false }, PLACE)
    return 'problem' in found ? refuse(target, found.problem) : outward(target.frame, found)
  }

  function mouse(tab: Tab, type: string, at: { x: number; y: number }, more = {}): Promise<unknown> {
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
      const at = await place(target)
      const { tab } = target.frame
      await mouse(tab, 'mouseMoved', at)
      for (const clickCount of double ? [1, 2] : [1]) {
        await mouse(tab, 'mousePressed', at, { button: 'left', buttons: 1, clickCount })
        await mouse(tab, 'mouseReleased', at, { button: 'left', clickCount })
      }
    },
    async hover(target) {
      await mouse(target.frame.tab, 'mouseMoved', await place(target))
    },
    async type(target, text) {
      const { frame, ref } = target
      const focused = await page.call(frame, 'focus', { ref, text }, FOCUSED)
      if (focused.problem !== undefined) refuse(target, focused.problem)
      if (focused.done) return
      if (text !== '') await cdp.call('Input.insertText', { session: frame.session, params: { text } })
      else if (!focused.empty) await keyDownAndUp(frame.session, keyStroke('Delete')!)
    },
    async press(tab, name) {
      const stroke = keyStroke(name)
      if (!stroke) throw new Refusal(`There is no key ${JSON.stringify(name.slice(0, 40))}.`)
      await keyDownAndUp(tab.session, stroke)
    },
    async select(target, text) {
      const { problem, chosen = [] } = await page.call(target.frame, 'select', { ref: target.ref, text }, CHOSEN)
      if (problem !== undefined) refuse(target, problem)
      return chosen
    },
    async boxOf(target) {
      await reveal(target.frame)
      const found = await page.call(target.frame, 'place', { ref: target.ref, force: true }, BOX)
      if ('problem' in found) return refuse(target, found.problem)
      const { x, y } = await outward(target.frame, { x: found.left, y: found.top })
      return { x, y, width: found.width, height: found.height }
    },
  }
}

export function gone(ref: number): string {
  return `There is no [e${ref}] on the page any more: it changed. Take a snapshot and use the references in it.`
}
