/**
 * Shows a run as it happens: dimmed reasoning, code blocks, tool output while it arrives, and the answer last. In a pipe the text
 * is the same, without colors and without a progress line. All text of a run passes through `printable`.
 */

import type { EventType, RunEvent } from '../domain/event.ts'
import { withoutEnd } from '../domain/trim.ts'
import type { Usage } from '../domain/usage.ts'
import { paint, printable, type Terminal } from './context.ts'
import { createProgress, type Progress } from './progress.ts'

export interface TraceView {
  add(event: RunEvent): void
  /** Shows a message between events, for example that the stream broke. */
  note(text: string): void
  close(): void
}

type Block = 'nothing' | 'reasoning' | 'call' | 'answer' | 'notice'

/** Numbers of first and last lines shown of long code; the stored trace has all of it. */
const CODE_HEAD = 12
const CODE_TAIL = 6
const RESULT_LINES = 14
const LINE_CHARS = 160

/** A tool call without a result, and its output as far as it is on the screen. */
interface OpenCall {
  readonly step: number
  readonly callId: string | undefined
  readonly tool: string
  lines: string[]
  /** Text after the last newline. */
  rest: string
  /** Number of lines that arrived and were not shown. */
  hidden: number
}

export function createTraceView(terminal: Terminal): TraceView {
  const progress: Progress = createProgress(terminal)
  let block: Block = 'nothing'
  /** The calls of one reply may run at the same time. */
  let calls: OpenCall[] = []
  /** The call whose lines are the last ones on the screen. */
  let current: OpenCall | undefined

  const dim = (text: string) => paint(terminal, 'dim', text)

  function line(text: string): void {
    progress.pause()
    terminal.write(`${text}\n`)
  }

  /** Separates blocks by an empty line. Stops the progress line in blocks that write unfinished lines. */
  function open(next: Block): void {
    if (next === 'reasoning' || next === 'answer') progress.stop()
    else progress.pause()
    if (block === 'reasoning' || block === 'answer') terminal.write('\n')
    if (block !== 'nothing' && !(block === 'notice' && next === 'notice')) terminal.write('\n')
    block = next
  }

  function notice(text: string): void {
    open('notice')
    line(text)
  }

  function reasoning(text: string): void {
    terminal.write(dim(printable(text).replaceAll('\n', '\n  ')))
  }

  /** Names the call that the next lines belong to, unless they follow its own. */
  function select(call: OpenCall): void {
    if (call !== current) line(dim(`  ↳ ${call.tool} (step ${call.step})`))
    current = call
  }

  function showOutput(shown: OpenCall, text: string): void {
    const parts = (shown.rest + printable(text)).split('\n')
    shown.rest = parts.pop()!
    for (const part of parts) showLine(shown, part)
  }

  function showLine(shown: OpenCall, text: string): void {
    if (shown.lines.length < RESULT_LINES) {
      select(shown)
      shown.lines.push(text)
      line(`    ${clip(text)}`)
    } else {
      shown.hidden++
      progress.say(`${shown.tool} · ${shown.lines.length + shown.hidden} lines`)
    }
  }

  /** Shows only the lines of the result that were not shown while they arrived. */
  function showResult(shown: OpenCall, output: string, durationMs: number): void {
    select(shown)
    const lines = withoutEnd(printable(output), '\n').split('\n')
    const repeats = shown.lines.every((text, i) => text === lines[i])
    const from = repeats ? shown.lines.length : 0
    const to = Math.max(from, repeats ? RESULT_LINES : RESULT_LINES / 2)
    for (const text of lines.slice(from, to)) line(`    ${clip(text)}`)
    const more = lines.length - to
    if (more > 0) line(dim(`    … ${more} more line${more === 1 ? '' : 's'}`))
    line(dim(`    ${seconds(durationMs)}`))
  }

  const handlers: { readonly [Type in EventType]: (event: Extract<RunEvent, { type: Type }>) => void } = {
    reasoning_started(event) {
      open('reasoning')
      terminal.write('  ')
      reasoning(event.content)
    },
    reasoning_delta: (event) => reasoning(event.text),
    tool_call(event) {
      if (event.via !== undefined) return line(dim(`  ↳ ${describeCodeCall(event.name, event.args)}`))
      open('call')
      const { step, callId } = event
      current = { step, callId, tool: printable(event.name), lines: [], rest: '', hidden: 0 }
      calls.push(current)
      for (const text of describeCall(terminal, event.name, event.args)) line(text)
      progress.start(current.tool)
    },
    tool_output(event) {
      const call = calls.find(({ step }) => step === event.step)
      if (call) showOutput(call, event.text)
    },
    tool_result(event) {
      if (event.via !== undefined) return
      // Older servers send no ids, and run one call after another.
      const call = calls.find(({ callId }) => callId === event.callId)
      if (!call) return
      showResult(call, event.output, event.duration_ms)
      if (event.full) line(dim(`    ${event.full.bytes.toLocaleString('en')} bytes in ${printable(event.full.path)}`))
      calls = calls.filter((other) => other !== call)
      progress.start(calls[0]?.tool ?? 'thinking')
    },
    approval_required: (event) =>
      notice(paint(terminal, 'yellow', `  ? ${printable(event.name)} waits for approval (step ${event.step})`)),
    approval_decided: (event) => notice(dim(`  ${event.approve ? 'approved' : 'denied'}`)),
    partial_output(event) {
      if (block !== 'answer') open('answer')
      terminal.write(printable(event.text))
    },
    model_retried: (event) =>
      notice(dim(`  retrying the model (attempt ${event.attempt}): ${printable(event.reason)}`)),
    notice: (event) => notice(dim(`  ${describeNotice(event)}`)),
    tools_changed: (event) => notice(dim(`  tools changed: ${printable(describeChange(event))}`)),
    context_cleared: (event) => {
      const what = event.media ? 'refused images and documents' : count(event.steps.length, 'older result')
      notice(dim(`  removed ${what} from the model’s view, about ${event.tokens} tokens`))
    },
    context_compacted: (event) => {
      const done = event.dropped ? 'removed' : 'summarized'
      notice(dim(`  ${done} older messages for the model: ${event.tokensBefore} to ${event.tokensAfter} tokens`))
    },
    stage(event) {
      const label = STAGES[event.stage]
      if (label !== undefined) progress.start(label)
    },
    warning: (event) => notice(paint(terminal, 'yellow', `  ! ${printable(event.message)}`)),
    error: (event) => notice(paint(terminal, 'red', `  ✗ ${printable(`${event.code}: ${event.message}`)}`)),
    completed: (event) => notice(describeEnd(terminal, event)),
  }

  return {
    add(event) {
      // A newer server may send events that this version cannot show.
      if (Object.hasOwn(handlers, event.type)) (handlers[event.type] as (event: RunEvent) => void)(event)
    },
    note: (text) => notice(dim(`  ${text}`)),
    close() {
      progress.stop()
    },
  }
}

const STAGES: Readonly<Record<string, string>> = {
  queued: 'waiting for a free worker',
  provisioning: 'starting the sandbox',
  working: 'thinking',
  requires_action: 'waiting for approval',
  settling: 'collecting files',
}

function describeCall(terminal: Terminal, name: string, args: Readonly<Record<string, unknown>>): string[] {
  const { code, language, path, content, edits, ...rest } = args
  const details = [
    typeof path === 'string' ? path : '',
    typeof code === 'string' ? (typeof language === 'string' ? language : 'python') : '',
    Object.keys(rest).length > 0 ? JSON.stringify(rest) : '',
  ]
  const head = `${paint(terminal, 'cyan', '●')} ${paint(terminal, 'bold', printable(name))}`
  const tail = clip(printable(details.filter(Boolean).join(' ')).replaceAll('\n', ' '))
  const texts = [code, content, Array.isArray(edits) ? edits.map(editText).join('\n') : undefined]
  const body = texts.find((text) => typeof text === 'string') ?? ''
  return [tail ? `${head} ${paint(terminal, 'dim', tail)}` : head, ...codeBlock(terminal, body)]
}

/** A call that code made, in one line. */
function describeCodeCall(name: string, args: Readonly<Record<string, unknown>>): string {
  return clip(printable(`${name} ${JSON.stringify(args)}`).replaceAll('\n', ' '))
}

/** Lines of a replacement of file_write: removed ones with `-`, new ones with `+`. */
function editText(edit: unknown): string {
  const { find, replace } = { ...(edit as { find?: unknown; replace?: unknown } | null) }
  const lines = (mark: string, text: unknown) =>
    typeof text === 'string' && text !== '' ? text.split('\n').map((line) => `${mark} ${line}`) : []
  return [...lines('-', find), ...lines('+', replace)].join('\n')
}

function codeBlock(terminal: Terminal, text: string): string[] {
  if (text === '') return []
  const lines = withoutEnd(printable(text), '\n').split('\n')
  const more = lines.length - CODE_HEAD - CODE_TAIL
  const row = (line: string) => `${paint(terminal, 'dim', '  │')} ${clip(line)}`
  if (more <= 1) return lines.map(row)
  return [
    ...lines.slice(0, CODE_HEAD).map(row),
    paint(terminal, 'dim', `  │ … ${more} more lines`),
    ...lines.slice(-CODE_TAIL).map(row),
  ]
}

function describeEnd(terminal: Terminal, end: Extract<RunEvent, { type: 'completed' }>): string {
  const style = end.status === 'completed' ? 'green' : end.status === 'failed' ? 'red' : 'yellow'
  const reason = end.stopReason && end.stopReason !== 'end_turn' ? ` (stopped by ${end.stopReason})` : ''
  return `${paint(terminal, style, end.status)}${reason} ${paint(terminal, 'dim', `in ${describeUsage(end.usage)}`)}`
}

const NOTICE_UNITS = { time: ' s', tokens: ' output tokens', cost: ' USD', calls: ' model calls' } as const

function describeNotice({ kind, left }: Extract<RunEvent, { type: 'notice' }>): string {
  return `notified the model: ${left}${NOTICE_UNITS[kind]} left`
}

function describeChange({ added, removed, changed }: Extract<RunEvent, { type: 'tools_changed' }>): string {
  const parts = Object.entries({ added, removed, changed }).filter(([, names]) => names.length > 0)
  return parts.map(([what, names]) => `${what} ${names.join(', ')}`).join('; ')
}

function describeUsage(usage: Usage): string {
  const parts = [
    seconds(usage.duration_ms),
    count(usage.model_calls, 'model call'),
    count(usage.tool_calls, 'tool call'),
    `${usage.input_tokens} tokens in, ${usage.output_tokens} out`,
    usage.cost ? `${usage.cost.amount} ${usage.cost.currency}` : '',
  ]
  return parts.filter(Boolean).join(' · ')
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

function seconds(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(2)} s` : `${(ms / 1000).toFixed(1)} s`
}

function clip(text: string): string {
  return text.length > LINE_CHARS ? `${text.slice(0, LINE_CHARS)}…` : text
}
