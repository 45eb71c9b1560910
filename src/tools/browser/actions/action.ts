/** The interface of the `browser` tool's actions, and the checks that they share. */
import type { ToolContext, ToolOutcome } from '../../port.ts'
import type { Chromium } from '../chromium.ts'
import { goneMessage, type Input, Refusal, type Target } from '../input.ts'
import type { Show } from '../report.ts'
import type { Tab } from '../tab.ts'

export interface Arguments {
  readonly url?: string | undefined
  readonly ref?: string | undefined
  readonly text?: string | undefined
  readonly key?: string | undefined
  readonly path?: string | undefined
  readonly seconds?: number | undefined
}

export interface ActionContext {
  readonly chromium: Chromium
  readonly args: Arguments
  readonly context: ToolContext
  /** Counts from 1 over the run, for file names. */
  readonly count: (what: string) => number
}

export interface ActionResult {
  /** A sentence for the model. */
  readonly message: string
  readonly show: Show
  readonly media?: ToolOutcome['media']
  /** The path to which the action's download is moved. */
  readonly downloadTo?: string | undefined
}

/** Throws Refusal if the model can act on the failure. */
export type Action = (context: ActionContext) => Promise<ActionResult>

const INPUT_MS = 60_000

/** `what`: what the argument is for, at the end of the message. */
export function required(value: string | undefined, name: string, what: string, mayBeEmpty = false): string {
  if (value === undefined || (value === '' && !mayBeEmpty)) throw new Refusal(`\`${name}\` is missing: ${what}.`)
  return value
}

/** The element that the `ref` argument names. */
export function targetOf({ page, tabs }: Chromium, { ref }: Arguments): Target {
  const given = required(ref, 'ref', 'the reference of an element, such as e12')
  const number = Number(/^\[?e?(\d{1,9})\]?$/.exec(given.trim())?.[1])
  if (!Number.isInteger(number))
    throw new Refusal(`\`ref\` must be a reference from the page, such as e12, got ${JSON.stringify(ref)}.`)
  const frame = page.frameOf(number)
  if (!frame || !tabs.all.includes(frame.tab)) throw new Refusal(goneMessage(number))
  if (frame.tab !== tabs.current)
    throw new Refusal(`[e${number}] is in tab ${frame.tab.name}, which is not the current one.`)
  return { ref: number, frame }
}

export function tabNamed({ tabs }: Chromium, name: string): Tab {
  const found = tabs.all.find((tab) => tab.name === name.trim().replace(/^\[|\]$/g, ''))
  if (!found)
    throw new Refusal(
      `There is no tab ${JSON.stringify(name)}. The tabs are ${tabs.all.map((tab) => tab.name).join(', ')}.`,
    )
  return found
}

/** Performs input and waits until the page has settled. Returns early if a dialog opens, because it blocks the page. */
export async function performInput(
  { tabs, input, navigation }: Chromium,
  perform: (input: Input) => Promise<unknown>,
): Promise<void> {
  const tab = tabs.current
  const performed = perform(input)
  await tabs.until(() => tab.dialog !== undefined || tab.crashed, INPUT_MS, performed)
  if (!tabs.all.includes(tab) || tab.dialog || tab.crashed) return
  await performed
  await navigation.settle(tabs.current)
}
