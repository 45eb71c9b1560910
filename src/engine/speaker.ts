/**
 * Turns what a model says into events, and decides what is answer and what is reasoning (contract.md "Stream").
 *
 * With tools on, a turn's first 240 characters are held:
 *   holding ──tool call──▶ they become a reasoning step
 *   holding ──a tool that the provider ran──▶ they become a reasoning step, and holding begins again
 *   holding ──end of turn──▶ they become answer
 *   holding ──241st character──▶ releasing: they become answer, and the rest follows as it comes
 * Without tools nothing is held; with a response format everything is, until it was checked.
 * Turns of the answer are parted by a blank line, so that the fragments joined are exactly the output.
 */
import type { RunEvent } from '../domain/event.ts'
import type { ModelDelta } from '../models/port.ts'

const HELD_CHARACTERS = 240

type ProviderTool = Extract<ModelDelta, { type: 'provider_tool' }>

export interface SpeakerOptions {
  readonly emit: (event: RunEvent) => void
  readonly nextStep: () => number
  readonly hold: 'nothing' | 'start' | 'everything'
  /** Answer text was shown in an earlier turn. */
  readonly answerStarted: boolean
}

export interface Speaker {
  reasoning(text: string): void
  /** The next reasoning text is a step of its own. */
  reasoningBlock(): void
  text(text: string): void
  /** A tool that the provider ran within the turn: what is still held was reasoning, unless it rests on it already. */
  providerTool(told: Omit<ProviderTool, 'type'>): void
  /** The turn ends with tool calls: what is still held was reasoning. */
  endBeforeTools(): void
  /** The turn ends the answer (or breaks off): what is still held is answer. */
  endAsAnswer(): void
  /** What is held, and is thrown away with `drop`. */
  held(): string
  /** Makes what is held a reasoning step: an answer that was sent back to the model. */
  drop(): void
  /** Whether answer text was shown, in this turn or before. */
  answerStarted(): boolean
}

export function createSpeaker({ emit, nextStep, hold, ...start }: SpeakerOptions): Speaker {
  let { answerStarted } = start
  let turnReleased = false
  let reasoningStep: number | undefined
  let held = ''
  let holding = hold !== 'nothing'

  function release(text: string): void {
    if (text === '') return
    const parted = answerStarted && !turnReleased ? `\n\n${text}` : text
    answerStarted = true
    turnReleased = true
    emit({ type: 'partial_output', text: parted })
  }

  function tellAsReasoning(text: string): void {
    reasoningStep = undefined
    if (text.trim() !== '') emit({ type: 'reasoning_started', step: nextStep(), content: text })
  }

  function takeHeld(): string {
    const text = held
    held = ''
    holding = false
    return text
  }

  return {
    reasoning(text) {
      if (text === '') return
      if (reasoningStep === undefined) {
        reasoningStep = nextStep()
        emit({ type: 'reasoning_started', step: reasoningStep, content: text })
      } else emit({ type: 'reasoning_delta', step: reasoningStep, text })
    },
    reasoningBlock() {
      reasoningStep = undefined
    },
    text(text) {
      if (!holding) return release(text)
      held += text
      if (hold === 'start' && longerThan(held, HELD_CHARACTERS)) release(takeHeld())
    },
    providerTool({ name, args, output, durationMs, late }) {
      if (!late) {
        tellAsReasoning(takeHeld())
        holding = hold !== 'nothing' && !turnReleased
      }
      reasoningStep = undefined
      emit({ type: 'tool_call', step: nextStep(), name, args })
      emit({ type: 'tool_result', step: nextStep(), output, duration_ms: durationMs })
    },
    endBeforeTools: () => tellAsReasoning(takeHeld()),
    endAsAnswer: () => release(takeHeld()),
    held: () => held,
    drop: () => tellAsReasoning(takeHeld()),
    answerStarted: () => answerStarted,
  }
}

/** Characters are code points: an emoji is one. Counted only where the cheap length leaves it open. */
function longerThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false
  if (text.length > 2 * limit) return true
  let count = 0
  for (const _ of text) if (++count > limit) return true
  return false
}
