/**
 * Turns model output into events, and decides what is answer and what is reasoning (docs/interactions.md).
 *
 * If tools are enabled, a turn's first 240 characters are held:
 *   holding ──tool call──▶ they become a reasoning step
 *   holding ──a tool run by the provider──▶ they become a reasoning step, and holding begins again
 *   holding ──end of turn──▶ they become answer
 *   holding ──241st character──▶ releasing: they become answer, and the rest follows as it comes
 * Without tools nothing is held. With a response format everything is held until it was checked.
 * A blank line separates the turns of the answer, so the joined fragments are exactly the output.
 * A turn that continues a broken one holds nothing and begins where that one ended.
 */
import { fragmentsOf, type RunEvent } from '../../domain/event.ts'
import { TURN_BREAK } from '../../domain/message.ts'
import type { ModelDelta } from '../../models/port.ts'
import { createOverlapFilter } from './continuation.ts'

const HELD_CHARACTERS = 240

type ProviderTool = Extract<ModelDelta, { type: 'provider_tool' }>

export interface OutputRouterOptions {
  readonly emit: (event: RunEvent) => void
  readonly nextStep: () => number
  readonly hold: 'nothing' | 'start' | 'everything'
  /** Answer text was shown in an earlier turn. */
  readonly answerStarted: boolean
  /** The shown text of the broken turn that this one continues. Empty if it continues none. */
  readonly continues: string
}

export interface OutputRouter {
  reasoning(text: string): void
  /** Starts a new step with the next reasoning text. */
  reasoningBlock(): void
  text(text: string): void
  /** A tool call that the provider ran within the turn. Held text becomes reasoning, unless the call is `late`. */
  providerTool(call: Omit<ProviderTool, 'type'>): void
  /** The turn ends with tool calls: held text becomes reasoning. */
  endBeforeTools(): void
  /** The turn ends the answer: held text becomes answer. */
  endAsAnswer(): void
  /** The turn broke off, and no other continues it: held text becomes answer, except a possible repetition. */
  endBroken(): void
  /** The answer text that this turn has shown. */
  shown(): string
  /** The held text. */
  held(): string
  /** Turns the held text into a reasoning step: an answer that is sent back to the model for correction. */
  drop(): void
  /** Whether answer text was shown, in this turn or before. */
  answerStarted(): boolean
}

export function createOutputRouter({ emit, nextStep, hold, continues, ...start }: OutputRouterOptions): OutputRouter {
  let { answerStarted } = start
  const overlap = continues === '' ? undefined : createOverlapFilter(continues)
  let turnReleased = continues !== ''
  let shown = ''
  let reasoningStep: number | undefined
  let held = ''
  let holding = hold !== 'nothing' && !overlap

  function release(text: string): void {
    if (text === '') return
    const newTurn = answerStarted && !turnReleased
    answerStarted = true
    turnReleased = true
    shown += text
    for (const [i, fragment] of fragmentsOf(newTurn ? TURN_BREAK + text : text).entries())
      emit({ type: 'partial_output', text: fragment, ...(newTurn && i === 0 && { newTurn }) })
  }

  function tellAsReasoning(text: string): void {
    reasoningStep = undefined
    if (text.trim() === '') return
    reason(text)
    reasoningStep = undefined
  }

  function reason(text: string): void {
    for (const fragment of fragmentsOf(text)) {
      if (reasoningStep !== undefined) emit({ type: 'reasoning_delta', step: reasoningStep, text: fragment })
      else {
        reasoningStep = nextStep()
        emit({ type: 'reasoning_started', step: reasoningStep, content: fragment })
      }
    }
  }

  function takeHeld(): string {
    const text = held
    held = ''
    holding = false
    return text
  }

  return {
    reasoning: reason,
    reasoningBlock() {
      reasoningStep = undefined
    },
    text(text) {
      if (!holding) return release(overlap ? overlap.push(text) : text)
      held += text
      if (hold === 'start' && longerThan(held, HELD_CHARACTERS)) release(takeHeld())
    },
    providerTool({ name, args, output, durationMs, late }) {
      if (!late) {
        tellAsReasoning(takeHeld())
        holding = hold !== 'nothing' && !turnReleased
      }
      reasoningStep = undefined
      const step = nextStep()
      const callId = `provider-${step}`
      emit({ type: 'tool_call', step, name, args, callId })
      emit({ type: 'tool_result', step: nextStep(), output, duration_ms: durationMs, callId })
    },
    endBeforeTools: () => tellAsReasoning(takeHeld() || (overlap?.end() ?? '')),
    endBroken: () => release(takeHeld()),
    endAsAnswer: () => release(takeHeld() || (overlap?.end() ?? '')),
    shown: () => shown,
    held: () => held,
    drop: () => tellAsReasoning(takeHeld()),
    answerStarted: () => answerStarted,
  }
}

/** Compares the length in code points. Counts them only if the cheap UTF-16 length is not conclusive. */
function longerThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false
  if (text.length > 2 * limit) return true
  let count = 0
  for (const _ of text) if (++count > limit) return true
  return false
}
