/** The playground's conversation: earlier turns, the current run, and suggestions before the first. */
import { Link } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import type { Interaction, NewInteraction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { Files, GivenFiles } from '../trace/files.tsx'
import { TraceView } from '../trace/trace-view.tsx'
import { useApproval } from '../trace/use-approval.ts'
import type { LiveRun } from '../trace/use-run.ts'
import { Status } from '../ui/badge.tsx'
import { cost, count, counted, duration } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { Scroller } from '../ui/scroller.tsx'
import { Notice } from '../ui/states.tsx'
import { EarlierTurns, UserMessage } from './earlier-turns.tsx'

const SUGGESTIONS = [
  ['Calculate', 'What is (17 * 23 + 4) / 5? Show the code.'],
  ['Create a file', 'Write the first 40 Fibonacci numbers into outputs/fibonacci.csv, with their index.'],
  ['Explore the sandbox', 'Which Python modules can you import here? Try numpy, pandas and matplotlib.'],
] as const

interface ConversationProps {
  readonly run: LiveRun
  readonly interaction: Interaction | undefined
  /** The request that was sent, until the server returns the interaction. */
  readonly sent: NewInteraction | undefined
  readonly onSuggest: (instruction: string) => void
}

export function Conversation({ run, interaction, sent, onSuggest }: ConversationProps) {
  const { trace, id, problem, starting } = run
  const decide = useApproval(id)
  const asking = interaction && interaction.id === id ? interaction : sent
  const scroller = useScrollToNewest(trace.blocks, interaction?.files)
  if (!id && !starting && problem === undefined) return <Welcome onSuggest={onSuggest} />
  return (
    <Scroller ref={scroller} label="Run" className="min-h-0 flex-1 overflow-y-auto focus-visible:-outline-offset-2">
      <div className="mx-auto grid max-w-3xl gap-4 px-4 py-5">
        {asking?.previousInteractionId && <EarlierTurns id={asking.previousInteractionId} />}
        {asking && <UserMessage text={asking.instruction} />}
        {interaction && interaction.id === id && <GivenFiles right files={interaction.resolved.files} />}
        {problem !== undefined ? (
          <Notice tone="red" title={Problem.from(problem).title}>
            {Problem.from(problem).message}
          </Notice>
        ) : (
          <TraceView trace={trace} files={interaction?.files ?? []} onDecide={decide} />
        )}
        {interaction && interaction.files.length > 0 && trace.status !== 'running' && (
          <Files files={interaction.files} />
        )}
        {trace.usage && trace.status !== 'running' && id && <Ended trace={trace} id={id} />}
      </div>
    </Scroller>
  )
}

function Ended({ trace, id }: { readonly trace: LiveRun['trace']; readonly id: string }) {
  const usage = trace.usage!
  const facts = [
    duration(usage.duration_ms),
    counted(usage.model_calls ?? 0, 'model call'),
    counted(usage.tool_calls ?? 0, 'tool call'),
    `${count(usage.input_tokens + usage.output_tokens)} tokens`,
    ...(usage.cost ? [cost(usage.cost.amount, usage.cost.currency)] : []),
  ]
  return (
    <footer className="flex flex-wrap items-center gap-x-3 gap-y-1 border-t pt-3 text-small text-soft tabular-nums">
      <Status status={trace.status} />
      <span>{facts.join(' · ')}</span>
      <Link to="/interactions/$id" params={{ id }} className="font-medium text-accent hover:underline">
        View run
      </Link>
    </footer>
  )
}

function Welcome({ onSuggest }: { readonly onSuggest: (instruction: string) => void }) {
  return (
    <div className="grid min-h-0 flex-1 place-items-center overflow-y-auto px-4 py-8">
      <div className="w-full max-w-xl">
        <h2 className="text-title font-semibold tracking-tight">Start a run</h2>
        <p className="mt-1 text-soft text-pretty">
          Each run gets a new sandbox, the selected tools and your files. Every step is shown as it happens.
        </p>
        <ul className="mt-5 grid gap-2 sm:grid-cols-3">
          {SUGGESTIONS.map(([name, text]) => (
            <li key={name}>
              <button
                type="button"
                onClick={() => onSuggest(text)}
                className="flex h-full w-full flex-col rounded-lg border bg-card p-3 text-left transition-colors hover:border-line-strong hover:bg-hover"
              >
                <span className="block font-medium">{name}</span>
                <span className="mt-1 line-clamp-3 text-small text-soft">{text}</span>
              </button>
            </li>
          ))}
        </ul>
        <p className="mt-5 flex items-center gap-2 text-small text-faint">
          <Icon name="shield" />
          Network access is disabled unless you allow it.
        </p>
      </div>
    </div>
  )
}

const NEAR_PX = 80

/** Scrolls to the newest content while the reader is at the bottom. */
function useScrollToNewest(blocks: unknown, files: unknown) {
  const scroller = useRef<HTMLElement>(null)
  const atBottom = useRef(true)
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const onScroll = () => {
      atBottom.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX
    }
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => element.removeEventListener('scroll', onScroll)
  })
  // After each addition.
  useEffect(() => {
    if (atBottom.current) scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  }, [blocks, files])
  return scroller
}
