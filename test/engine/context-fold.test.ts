/** Properties of the model's view of a conversation, for random conversations and edits. */
import { describe, expect, it } from 'vitest'
import { type Entry, foldContext } from '../../src/domain/context.ts'
import { type AssistantMessage, countCharacters, type Message, toolCalls, userText } from '../../src/domain/message.ts'
import { CONTINUE } from '../../src/domain/prompts.ts'
import { planClearing, planCompaction, shortened } from '../../src/engine/agent/context-plan.ts'

/** Whole numbers from a seed: a linear congruential generator. */
function createRandom(seed: number) {
  let state = seed
  return (most: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state % (most + 1)
  }
}

type Random = ReturnType<typeof createRandom>

function someTurn(random: Random, turn: number): Entry[] {
  const kind = random(9)
  const text = 'word '.repeat(random(200))
  if (kind === 0) return [{ edit: 'instruction', message: userText(`instruction ${turn} ${text}`) }]
  const measured = { edit: 'measured', tokens: 100 } as const
  if (kind === 1) return [{ role: 'assistant', content: [{ type: 'text', text }] }, measured, CONTINUE]
  const calls = Array.from({ length: 1 + random(4) }, (_, i) => `${turn}-${i}`)
  const content = calls.map(
    (callId) => ({ type: 'tool_call', callId, name: 'find', argsText: '{}', args: {} }) as const,
  )
  const results = calls.map(
    (callId) => ({ role: 'tool', callId, name: 'find', output: 'x'.repeat(random(3_000)), step: turn }) as const,
  )
  return [{ role: 'assistant', content }, measured, ...results]
}

function checkPairs(messages: readonly Message[]): void {
  let open: string[] = []
  for (const message of [...messages, userText('')]) {
    if (message.role === 'tool') expect(message.callId).toBe(open.shift())
    else expect(open).toEqual([])
    if (message.role === 'assistant') open = toolCalls(message as AssistantMessage).map(({ callId }) => callId)
  }
}

function someEdit(random: Random, messages: readonly Message[]): Entry | undefined {
  const keep = random(4_000)
  const clears = random(1) === 0
  const plan = clears ? planClearing(messages, keep, random(2_000)) : planCompaction(messages, keep, random(4_000))
  if (!plan) return undefined
  if (clears) return { edit: 'cleared', keep: plan.keep }
  return { edit: 'compacted', keep: plan.keep, window: 8_000, ...(random(3) > 0 && { summary: 'what was done' }) }
}

describe('the folded conversation', () => {
  it.each(Array.from({ length: 60 }, (_, seed) => seed))('seed %i', (seed) => {
    const random = createRandom(seed)
    const start: Entry = { edit: 'instruction', message: userText('do it') }
    const log: Entry[] = [start]
    const live = foldContext([start])
    for (let turn = 1; turn <= 40; turn++) {
      const before = [...live.messages()]
      const added = someTurn(random, turn)
      live.add(...added)
      log.push(...added)
      expect(live.messages().slice(0, before.length)).toEqual(before)
      if (random(2) > 0) continue
      const edit = someEdit(random, live.messages())
      if (!edit || !('edit' in edit)) continue
      const latest = live.messages().at(-1)
      live.edit(edit, 0)
      log.push(edit)
      // What the model has not seen yet stays, unless even the last turn is too large.
      if ('keep' in edit && edit.keep > 0) expect(live.messages().at(-1)).toBe(latest)
      checkPairs(live.messages())
      expect(live.messages()[0]!.role).toBe('user')
      expect(live.characters()).toBe(countCharacters(live.messages()))
    }
    // A restored conversation is the same.
    expect(foldContext(log).messages()).toEqual(live.messages())
    expect(foldContext(log).measured()).toEqual(live.measured())
    checkPairs(shortened(live.messages(), 1_000))
  })
})

it('keeps the instruction of the run in the message that replaces it, and only there', () => {
  const instruction: Entry = { edit: 'instruction', message: userText('[the task]') }
  const answer: Message = { role: 'assistant', content: [{ type: 'text', text: 'Hm.' }] }
  const compacted = { edit: 'compacted', window: 1_000, summary: '[the summary]' } as const
  const all = foldContext([instruction, answer, { ...compacted, keep: 0 }])
  expect(JSON.stringify(all.messages())).toMatch(/\[the task\].*\[the summary\]/)
  const kept = foldContext([userText('old'), answer, instruction, { ...compacted, keep: 1 }])
  expect(JSON.stringify(kept.messages()).split('[the task]')).toHaveLength(2)
})
