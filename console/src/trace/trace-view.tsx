/** The trace of a run in order: reasoning, tool calls, warnings, answer. */
import { lazy, Suspense, useState } from 'react'
import type { OutputFile } from '../api/types.gen.js'
import { cx } from '../ui/cx.ts'
import { Icon, Spinner } from '../ui/icon.tsx'
import { LabelSuffix, useUniqueLabel } from '../ui/label-suffix.ts'
import { Notice } from '../ui/states.tsx'
import type { Block, Trace } from './fold.ts'
import { ToolCallCard } from './tool-call-card.tsx'

const Answer = lazy(() => import('./markdown.tsx'))

interface TraceViewProps {
  /** Distinguishes the accessible names of two traces on one page. */
  readonly name?: string
  readonly trace: Trace
  readonly files: readonly OutputFile[]
  readonly onDecide?: ((step: number, approve: boolean, reason?: string) => void) | undefined
}

export function TraceView({ trace, files, onDecide, name }: TraceViewProps) {
  const live = trace.status === 'running'
  return (
    <LabelSuffix value={name}>
      <div className="grid gap-3">
        {trace.blocks.map((block, i) => (
          <BlockView
            key={i}
            block={block}
            live={live}
            last={live && i === trace.blocks.length - 1}
            files={files}
            onDecide={onDecide}
          />
        ))}
        {live && <Waiting trace={trace} />}
      </div>
    </LabelSuffix>
  )
}

type BlockProps = Omit<TraceViewProps, 'trace' | 'name'> & {
  readonly block: Block
  readonly live: boolean
  readonly last: boolean
}

function BlockView({ block, live, last, files, onDecide }: BlockProps) {
  switch (block.kind) {
    case 'reasoning':
      return <Reasoning text={block.text} live={last} />
    case 'call':
      return <ToolCallCard call={block} live={live} files={files} onDecide={onDecide} />
    case 'answer':
      return <AnswerView text={block.text} />
    case 'note':
      return (
        <Notice {...(block.tone && { tone: block.tone })} title={block.title.replaceAll('_', ' ')}>
          {block.text}
        </Notice>
      )
  }
}

function AnswerView({ text }: { readonly text: string }) {
  return (
    <section aria-label={useUniqueLabel('Answer')} className="py-1">
      <Suspense fallback={<p className="prose whitespace-pre-wrap">{text}</p>}>
        <Answer text={text} />
      </Suspense>
    </section>
  )
}

const SHORT_CHARS = 280

function Reasoning({ text, live }: { readonly text: string; readonly live: boolean }) {
  const long = text.length > SHORT_CHARS
  const [open, setOpen] = useState(false)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a landmark for each block would be too many.
    <div role="group" aria-label="Reasoning" className="flex gap-2.5 px-3 text-soft">
      <Icon name="thought" className={cx('mt-0.5', live && 'text-accent animate-pulse')} />
      <div className="min-w-0 flex-1">
        <p className={cx('whitespace-pre-wrap break-words', long && !open && !live && 'line-clamp-3')}>{text}</p>
        {long && !live && (
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="mt-1 text-small font-medium text-text underline underline-offset-2"
          >
            {open ? 'Show less' : 'Show more'}
          </button>
        )}
      </div>
    </div>
  )
}

const WAITING: Record<string, string> = {
  queued: 'Queued…',
  provisioning: 'Preparing sandbox…',
  settling: 'Collecting files…',
}

function Waiting({ trace }: { readonly trace: Trace }) {
  const last = trace.blocks.at(-1)
  if (trace.stage === 'requires_action' || (last?.kind === 'call' && !last.done)) return null
  return (
    <p role="status" className="flex items-center gap-2.5 px-3 text-soft">
      <Spinner className="text-accent" />
      {(trace.stage && WAITING[trace.stage]) ?? (last ? 'Working…' : 'Thinking…')}
    </p>
  )
}
