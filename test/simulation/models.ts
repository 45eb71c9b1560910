/**
 * The simulated models, an implementation of src/models/port.ts. The n-th answer has the words `n.0 `, `n.1 `, …, `n.end `,
 * so that a check of the output finds missing and repeated words, and answers that were not continued. The scripted
 * provider of the tests chooses the faults (support/model-provider/faults.ts). A failed call may be billed too. Some
 * worlds have a fallback model.
 */
import { type AssistantPart, answerText, type Message, toolCalls } from '../../src/domain/message.ts'
import { CONTINUE, NOTHING_LEFT } from '../../src/domain/prompts.ts'
import type { TokenCount } from '../../src/domain/usage.ts'
import type {
  Catalogue,
  CatalogueEntry,
  FinishReason,
  Model,
  ModelDelta,
  ModelFailure,
  ModelOutcome,
} from '../../src/models/port.ts'
import { drawFault } from '../support/model-provider/faults.ts'
import type { Journal } from './journal.ts'
import type { Odds } from './odds.ts'
import type { Process, Scheduler } from './scheduler.ts'

const FAILURES = ['refused', 'overloaded', 'unreachable', 'stalled', 'malformed'] as const
/** Number of turns after which the model requests no more tools. */
const MAX_TURNS = 6
/** Context window of the models' refusals, in tokens. */
const WINDOW = 4_000
/** Messages of the shortest prompt that is refused as too long. */
const LEAST_MESSAGES = 5

type ToolCall = Extract<AssistantPart, { type: 'tool_call' }>

export interface ModelWorld {
  readonly scheduler: Scheduler
  readonly odds: Odds
  readonly journal: Journal
  /** Whether a fallback model is called if the first one fails. */
  readonly hasFallback: boolean
  /** Whole texts of all answers, by their number. */
  readonly answers: string[]
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

function createModel(node: Process, { scheduler, odds, journal, answers }: ModelWorld): Model {
  const { random, chance } = scheduler
  const failed = (kind: ModelFailure['kind'], more: Partial<ModelFailure> = {}): ModelOutcome => {
    const tokens = chance(0.5) ? { input: 10, output: 3, cachedInput: 0, reasoning: 0 } : undefined
    const failure = { message: `The model is ${kind}.`, kind, retryable: kind !== 'refused', ...more }
    return { ok: false, failure, tokens }
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
      const { messages, tools, maxOutputTokens } = request
      const shown = brokenText(messages)
      const usesTools = shown === undefined && tools.length > 0 && messages.length < 2 * MAX_TURNS && chance(0.6)
      const plan = shown === undefined ? planDeltas(answers, usesTools, random) : planRest(shown, answers, random)
      const { modelFails: refused, modelCut: broken, modelLimited: cut } = odds
      // An empty continuation means that nothing is left of the answer.
      const empty = shown === undefined ? odds.modelEmpty : 0
      const fault = drawFault(random, { refused, broken, cut, empty }, plan.length)
      const [kind = '', count] = (fault ?? '').split(':')
      const endsAt = kind === 'empty' ? 0 : kind.endsWith('-after') ? Number(count) : plan.length
      if (!(await pause(20 + random.next() * 500))) return failed('aborted')
      if (kind === 'status') return failed(random.pick(FAILURES))
      if (messages.length >= LEAST_MESSAGES && chance(odds.modelWindow))
        return failed('refused', { tooLong: { prompt: WINDOW + 1, window: WINDOW } })
      const content: AssistantPart[] = []
      for (const delta of plan.slice(0, endsAt)) {
        if (chance(odds.modelHangs / plan.length)) await aborted
        if (!(await pause(random.next() * (chance(0.1) ? 1_500 : 30)))) return failed('aborted')
        onDelta(delta)
        if (delta.type === 'text' || delta.type === 'reasoning') content.push({ type: delta.type, text: delta.text })
      }
      if (kind.endsWith('-after') && kind !== 'length-after') return failed('truncated')
      const said = endsAt * 2
      const tokens: TokenCount = { input: 10, output: said, cachedInput: 0, reasoning: 0 }
      const calls = usesTools && kind !== 'empty' ? planTools(answers.length, random) : []
      const isLimited = kind === 'length-after' || said >= maxOutputTokens
      const finish: FinishReason = isLimited ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop'
      return {
        ok: true,
        message: { role: 'assistant', content: [...content, ...calls] },
        finish,
        tokens: chance(0.9) ? tokens : undefined,
      }
    },
  }
}

/** The shown text of the broken answer that a request asks to continue. Undefined if it asks for something else. */
function brokenText(messages: readonly Message[]): string | undefined {
  if (!isContinue(messages.at(-1))) return undefined
  const first = messages.findLastIndex((message) => message.role !== 'assistant' && !isContinue(message)) + 1
  return messages
    .slice(first)
    .flatMap((message) => (message.role === 'assistant' ? [answerText(message)] : []))
    .join('')
}

function isContinue(message: Message | undefined): boolean {
  return message?.role === 'user' && JSON.stringify(message.content) === JSON.stringify(CONTINUE.content)
}

/** Plans the rest of a broken answer. A shown text that is no beginning of an answer gets a word that the check finds. */
function planRest(shown: string, answers: readonly string[], random: Scheduler['random']): ModelDelta[] {
  const whole = answers[Number(/^\s*(\d+)\./.exec(shown)?.[1] ?? -1)]
  if (!whole?.startsWith(shown.trimStart())) return [{ type: 'text', text: `lost.${shown.length} ` }]
  const rest = whole.slice(shown.trimStart().length)
  return rest === '' ? [{ type: 'text', text: NOTHING_LEFT }] : inFragments(rest, random)
}

/**
 * Plans the output of one call: sometimes reasoning first, then little or no text before tool calls, or an answer of
 * any length.
 */
function planDeltas(answers: string[], usesTools: boolean, random: Scheduler['random']): ModelDelta[] {
  const call = answers.length
  const thoughts = random.next() < 0.4 ? random.whole(1, 4) : 0
  const isLong = random.next() < (usesTools ? 0.1 : 0.3)
  const words = usesTools ? random.whole(0, isLong ? 60 : 5) : random.whole(1, isLong ? 300 : 70)
  const numbers = Array.from({ length: words }, (_, i) => `${call}.${i} `)
  const text = words > 0 ? `${numbers.join('')}${call}.end ` : ''
  answers.push(text)
  const deltas: ModelDelta[] = []
  for (let i = 0; i < thoughts; i++) deltas.push({ type: 'reasoning', text: `thought ${call}.${i} ` })
  deltas.push(...inFragments(text, random))
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

/** Splits a text into fragments of a few words. */
function inFragments(text: string, random: Scheduler['random']): ModelDelta[] {
  const words = text.match(/\S*\s+|\S+/g) ?? []
  const deltas: ModelDelta[] = []
  while (words.length > 0) deltas.push({ type: 'text', text: words.splice(0, random.whole(1, 12)).join('') })
  return deltas
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
