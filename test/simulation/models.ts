/**
 * The simulated models, an implementation of src/models/port.ts. The n-th call outputs the words `n.0 `, `n.1 `, `n.2
 * `, …, so that a check of the answer finds missing and repeated words. A failed call may be billed too. Some worlds
 * have a fallback model.
 */
import { type AssistantPart, type Message, toolCalls } from '../../src/domain/message.ts'
import type { TokenCount } from '../../src/domain/usage.ts'
import type { Catalogue, CatalogueEntry, Model, ModelDelta, ModelFailure, ModelOutcome } from '../../src/models/port.ts'
import type { Journal } from './journal.ts'
import type { Odds } from './odds.ts'
import type { Process, Scheduler } from './scheduler.ts'

const FAILURES = ['refused', 'overloaded', 'unreachable', 'stalled', 'malformed'] as const
/** Number of turns after which the model requests no more tools. */
const MAX_TURNS = 6

type ToolCall = Extract<AssistantPart, { type: 'tool_call' }>

export interface ModelWorld {
  readonly scheduler: Scheduler
  readonly odds: Odds
  readonly journal: Journal
  /** Whether a fallback model is called if the first one fails. */
  readonly hasFallback: boolean
  /** Returns the number of the next call, counted over all models. */
  readonly nextCall: () => number
}

export function createCatalogue(node: Process, world: ModelWorld): Catalogue {
  const entry = (name: string, more: Partial<CatalogueEntry>): CatalogueEntry => ({
    name,
    provider: 'simulation',
    model: name,
    source: 'this test',
    vision: false,
    documents: false,
    demo: false,
    open: () => createModel(node, world),
    ...more,
  })
  const entries = [
    entry('simulated', { price: { input: 1, output: 2 }, ...(world.hasFallback && { fallbacks: ['fallback'] }) }),
    entry('fallback', { price: { input: 3, output: 5 } }),
  ]
  return {
    get: (name) => entries.find((each) => each.name === name),
    names: () => entries.map(({ name }) => name),
    defaultName: 'simulated',
    describe: () => entries,
    async close() {},
  }
}

function createModel(node: Process, { scheduler, odds, journal, nextCall }: ModelWorld): Model {
  const { random, chance } = scheduler
  const failed = (kind: ModelFailure['kind']): ModelOutcome => {
    const tokens = chance(0.5) ? { input: 10, output: 3, cachedInput: 0, reasoning: 0 } : undefined
    return { ok: false, failure: { message: `The model is ${kind}.`, kind, retryable: kind !== 'refused' }, tokens }
  }

  return {
    async call(request, onDelta, signal) {
      const aborted = new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true })
        if (signal.aborted) resolve()
      })
      /** Resolves to false if the call was aborted meanwhile. */
      const pause = async (ms: number) => {
        await Promise.race([scheduler.sleep(node, ms, 'the model speaks'), aborted])
        return !signal.aborted
      }
      checkResults(journal, request.messages)
      const call = nextCall()
      const usesTools = request.tools.length > 0 && request.messages.length < 2 * MAX_TURNS && chance(0.6)
      const plan = planDeltas(call, usesTools, random)
      const cutAt = chance(odds.modelCut) ? random.whole(0, plan.length - 1) : undefined
      if (!(await pause(20 + random.next() * 500))) return failed('aborted')
      if (chance(odds.modelFails)) return failed(random.pick(FAILURES))
      const content: AssistantPart[] = []
      for (const [i, delta] of plan.entries()) {
        if (i === cutAt) return failed('truncated')
        if (chance(odds.modelHangs / plan.length)) await aborted
        if (!(await pause(random.next() * (chance(0.1) ? 1_500 : 30)))) return failed('aborted')
        onDelta(delta)
        if (delta.type === 'text' || delta.type === 'reasoning') content.push({ type: delta.type, text: delta.text })
      }
      const said = plan.length * 2
      const tokens: TokenCount = { input: 10, output: said, cachedInput: 0, reasoning: 0 }
      const cut = said >= request.maxOutputTokens
      const calls = usesTools ? planTools(call, random) : []
      const finish = cut ? 'length' : usesTools ? 'tool_calls' : 'stop'
      return {
        ok: true,
        message: { role: 'assistant', content: [...content, ...calls] },
        finish,
        tokens: chance(0.9) ? tokens : undefined,
      }
    },
  }
}

/**
 * Plans the output of one call: sometimes reasoning first, then little or no text before tool calls, or an answer of
 * any length.
 */
function planDeltas(call: number, usesTools: boolean, random: Scheduler['random']): ModelDelta[] {
  const thoughts = random.next() < 0.4 ? random.whole(1, 4) : 0
  const words = usesTools ? random.whole(0, random.next() < 0.1 ? 60 : 5) : random.whole(1, 70)
  const deltas: ModelDelta[] = []
  for (let i = 0; i < thoughts; i++) deltas.push({ type: 'reasoning', text: `thought ${call}.${i} ` })
  // Each fragment has a few words.
  for (let i = 0; i < words; ) {
    const until = Math.min(words, i + random.whole(1, 12))
    let text = ''
    for (; i < until; i++) text += `${call}.${i} `
    deltas.push({ type: 'text', text })
  }
  if (deltas.length === 0) deltas.push({ type: 'reasoning', text: `thought ${call}.0 ` })
  return deltas
}

/** Checks that every result is that of its call: the results of a turn come in the order of its calls. */
function checkResults(journal: Journal, messages: readonly Message[]): void {
  for (const [i, message] of messages.entries()) {
    if (message.role !== 'assistant') continue
    for (const [n, { callId, name, args }] of toolCalls(message).entries()) {
      const result = messages[i + 1 + n]
      const isPaired = result?.role === 'tool' && result.callId === callId && result.name === name
      const isRight = name !== 'look' || (isPaired && (result.output === args?.at || !SAW.test(result.output)))
      if (!isPaired || !isRight) journal.violation('the world', `a model got another result for ${name} ${args?.at}`)
    }
  }
}

/** A result of `look`. Other results say that the call was refused or interrupted. */
const SAW = /^\d+\.\d+$/

/** Plans the calls of a turn: sometimes more than may run at once, sometimes all with the same id. */
function planTools(call: number, random: Scheduler['random']): ToolCall[] {
  const sameId = random.next() < 0.1
  const length = random.next() < 0.1 ? random.whole(7, 10) : random.whole(1, 4)
  return Array.from({ length }, (_, i) => {
    const planned = planTool(call, i, random)
    return sameId ? { ...planned, callId: 'call' } : planned
  })
}

function planTool(call: number, i: number, random: Scheduler['random']): ToolCall {
  const [name, args] = random.pick<[string, object | undefined]>([
    ['code_execution', { code: 'work()' }],
    ['code_execution', { code: 'work()', language: 'bash' }],
    ['code_execution', { code: 'work()', language: random.pick(['python', 'javascript']) }],
    ['look', { at: `${call}.${i}` }],
    ['look', { at: `${call}.${i}` }],
    ['file_write', { path: 'outputs/notes.txt', content: `${call}.${i}\n`, mode: 'append' }],
    ['file_read', { path: 'outputs/notes.txt' }],
    ['post', {}],
    ['ask', {}],
    ['no_such_tool', {}],
    ['code_execution', undefined],
  ])
  const argsText = args ? JSON.stringify(args) : '{"code": '
  return { type: 'tool_call', callId: `call_${call}_${i}`, name, argsText, args: args as ToolCall['args'] }
}
