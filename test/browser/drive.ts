/** Drives a browser by a scripted model: each step may depend on the results before it. */
import { randomUUID } from 'node:crypto'
import type { FakeProvider } from '../fake-provider.ts'
import type { Answer, Server } from '../support/server.ts'
import { outputsOf } from '../support/tool-run.ts'

/** Arguments of the browser, or a call of another tool. A function gets the last output and all outputs. */
type Call =
  | { readonly action: string; readonly [name: string]: unknown }
  | { readonly tool: string; readonly args: object }
export type Step = Call | Pause | ((last: string, all: readonly string[]) => Call)

/** A step at which the model waits until it is released. */
interface Pause {
  readonly then: Call
  readonly onReach: () => void
  readonly hold: Promise<void>
}

export function paused(then: Call): { step: Step; reached: Promise<void>; release: () => void } {
  const { promise: reached, resolve: onReach } = Promise.withResolvers<void>()
  const { promise: hold, resolve: release } = Promise.withResolvers<void>()
  return { step: { then, onReach, hold }, reached, release }
}

export interface Driven {
  readonly body: Answer['body']
  readonly outputs: readonly string[]
}

/** Scripts the model, and returns the instruction that starts these steps. */
function script(provider: FakeProvider, steps: readonly Step[]): string {
  const marker = `[${randomUUID()}]`
  provider.when(marker, ({ body }) => {
    const said = body.messages.filter(({ role }) => role === 'tool').map(({ content }) => textOf(content))
    const step = steps[said.length]
    if (step === undefined) return { text: 'Done.' }
    if (isPause(step)) {
      step.onReach()
      return { hold: step.hold, toolCalls: [callOf(step.then)] }
    }
    return { toolCalls: [callOf(stepped(step, said))] }
  })
  return marker
}

const isPause = (step: Step): step is Pause => 'hold' in step

function callOf(call: Call): { name: string; args: unknown } {
  return 'tool' in call ? { name: call.tool as string, args: call.args } : { name: 'browser', args: call }
}

/** Computes a step. An error becomes an invalid action, because a fake provider can't throw. */
function stepped(step: Exclude<Step, Pause>, said: readonly string[]): Call {
  if (typeof step !== 'function') return step
  try {
    return step(said.at(-1) ?? '', said)
  } catch (error) {
    return { action: `impossible: ${(error as Error).message}` }
  }
}

export async function drive(
  server: Server,
  provider: FakeProvider,
  steps: readonly Step[],
  request: object = {},
): Promise<Driven> {
  const instruction = script(provider, steps)
  const { body } = await server.post('/v1beta/interactions', { instruction, tools: ['browser'], ...request })
  return { body, outputs: outputsOf(body.executionTrace ?? []) }
}

/** The reference in the line that contains the mark. */
export function ref(text: string, mark: string | RegExp): string {
  const line = text.split('\n').find((each) => (typeof mark === 'string' ? each.includes(mark) : mark.test(each)))
  const found = /\[(e\d+)\]/.exec(line ?? '')?.[1]
  if (!found) throw new Error(`No reference at ${mark} in:\n${text}`)
  return found
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return (content as { type: string; text?: string }[]).map(({ text = '' }) => text).join('')
}
