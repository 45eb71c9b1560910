/** The playground: what runs stands at the right, what it does at the left, what to do next at the foot. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { NO_SETTINGS, type Settings, settingsOf, toRequest } from '../agent-form/settings.ts'
import { SettingsForm } from '../agent-form/settings-form.tsx'
import { cancelInteraction } from '../api/sdk.gen.js'
import type { Interaction, NewInteraction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { agentQuery, runQuery } from '../server/queries.ts'
import { useMayChange } from '../session/session.ts'
import { useTitle } from '../shell/page.tsx'
import { Files, GivenFiles } from '../trace/files.tsx'
import { TraceView } from '../trace/trace-view.tsx'
import { useDecide } from '../trace/use-decide.ts'
import { type LiveRun, useRun } from '../trace/use-run.ts'
import { Status } from '../ui/badge.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { cx } from '../ui/cx.ts'
import { cost, count, counted, duration } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { Scroller } from '../ui/scroller.tsx'
import { Notice } from '../ui/states.tsx'
import { toast } from '../ui/toast.tsx'
import { againBody, filesOfRun, type Origin, originOf, settingsOfRun, signInsLost } from './again.ts'
import { AgentPicker } from './agent-picker.tsx'
import { type Attached, Composer } from './composer.tsx'
import { Asked, EarlierTurns } from './earlier-turns.tsx'

const CodeDialog = lazy(() => import('../agent-form/code-dialog.tsx'))
const ExchangeDialog = lazy(() => import('./exchange-dialog.tsx'))
const Sheet = lazy(() => import('../ui/layer.tsx').then(({ Sheet }) => ({ default: Sheet })))

const route = getRouteApi('/playground')
const FIRST: Settings = { ...NO_SETTINGS, tools: ['code_execution', 'file_read', 'file_write'] }

export default function Playground() {
  useTitle('Playground')
  const navigate = useNavigate()
  const { run: runId, agent: agentId, again } = route.useSearch()
  const [settings, setSettings] = useState(FIRST)
  const [instruction, setInstruction] = useState('')
  /** Where this is a run made again: what it had beside its settings. */
  const [origin, setOrigin] = useState<Origin>()
  /** What was sent last from here, and as which run. */
  const [sent, setSent] = useState<{ readonly body: NewInteraction; readonly id?: string }>()
  const [files, setFiles] = useState<readonly Attached[]>([])
  const [dialog, setDialog] = useState<'code' | 'exchange' | 'settings'>()

  const run = useRun(runId, (id) => {
    setSent((before) => before && { ...before, id })
    navigate({ to: '/playground', search: (before) => ({ ...before, run: id, again: undefined }) })
  })
  const interaction = useQuery({ ...runQuery(runId ?? ''), enabled: runId !== undefined })
  const agent = useQuery({ ...agentQuery(agentId ?? ''), enabled: agentId !== undefined })
  const earlier = useQuery({ ...runQuery(again ?? ''), enabled: again !== undefined })

  // A run that is to be made again fills the form with what it ran with.
  const filled = useRef<string>(undefined)
  useEffect(() => {
    // Once: when it is read anew, what was changed here since must stay.
    if (!earlier.data || filled.current === again) return
    filled.current = again
    setInstruction(earlier.data.instruction)
    setSettings(settingsOfRun(earlier.data))
    setOrigin(originOf(earlier.data))
    filesOfRun(earlier.data).then(setFiles, (error) => toast(Problem.from(error).message, true))
    const lost = signInsLost(earlier.data)
    if (lost.length > 0) toast(`Sign-ins that were sent with it are not kept: ${lost.join(', ')}`, true)
  }, [earlier.data, again])

  // And so does one that was not sent from here (a reload, a link): the conversation goes on with what it ran with.
  const opened = interaction.data?.id === runId ? interaction.data : undefined
  useEffect(() => {
    if (!opened || filled.current === opened.id) return
    filled.current = opened.id
    if (sent?.id === opened.id || agentId !== undefined) return
    setSettings(settingsOfRun(opened))
    setOrigin(originOf(opened))
  }, [opened, sent, agentId])

  const ended = run.trace.status !== 'running'
  const goesOn = runId !== undefined && ended
  const body: NewInteraction = {
    instruction,
    ...(agentId ? { agentId } : origin ? againBody(origin, settings) : toRequest(settings)),
    ...(goesOn && { previousInteractionId: runId }),
    ...(files.length > 0 && {
      files: files.map(({ name, content }) => ({ name, content, encoding: 'base64' as const })),
    }),
  }
  const submit = () => {
    setSent({ body })
    run.start(body)
    setInstruction('')
    setFiles([])
  }
  const fresh = () => {
    setSent(undefined)
    setOrigin(undefined)
    navigate({ to: '/playground', search: agentId ? { agent: agentId } : {} })
  }
  const mayRun = useMayChange()
  const busy = run.starting || (runId !== undefined && !ended && run.problem === undefined)

  const panel = (
    <div className="grid gap-5 p-4">
      <AgentPicker
        value={agentId}
        onChange={(id) => navigate({ to: '/playground', search: (before) => ({ ...before, agent: id }) })}
      />
      {origin?.agentId && !agentId && (
        <OfAgent origin={origin} onDetach={() => setOrigin({ ...origin, agentId: null, agentVersion: null })} />
      )}
      {agentId ? (
        agent.data && <AgentFacts settings={settingsOf(agent.data)} id={agentId} />
      ) : (
        <SettingsForm value={settings} onChange={setSettings} />
      )}
    </div>
  )
  return (
    <div className="grid h-[calc(100dvh-3rem)] grid-rows-1 lg:h-dvh lg:grid-cols-[minmax(0,1fr)_21rem]">
      <div className="flex min-h-0 min-w-0 flex-col">
        <header className="flex h-12 shrink-0 items-center gap-2 border-b px-4">
          <h1 className={cx('text-lead font-semibold', runId && 'max-sm:sr-only')}>Playground</h1>
          {runId && <Status status={run.trace.status} stage={run.trace.stage} />}
          <span className="flex-1" />
          {runId && (
            <Button size="small" look="ghost" icon="plus" onClick={fresh}>
              New
            </Button>
          )}
          <Button size="small" look="ghost" icon="code" onClick={() => setDialog('code')} className="max-sm:hidden">
            Get code
          </Button>
          {runId && <IconButton icon="terminal" label="Request and response" onClick={() => setDialog('exchange')} />}
          <IconButton
            icon="settings"
            label="What it runs with"
            onClick={() => setDialog('settings')}
            className="lg:hidden"
          />
        </header>
        <Conversation
          key={run.trace.events.length === 0 ? 'none' : runId}
          run={run}
          interaction={interaction.data}
          sent={sent?.body}
          onSuggest={setInstruction}
        />
        <Composer
          instruction={instruction}
          onInstruction={setInstruction}
          files={files}
          onFiles={setFiles}
          busy={busy}
          mayRun={mayRun}
          goesOn={goesOn}
          onRun={submit}
          stop={runId && busy && mayRun ? <StopButton id={runId} /> : undefined}
        />
      </div>
      <aside aria-label="What it runs with" className="hidden min-h-0 overflow-y-auto border-l bg-panel lg:block">
        {panel}
      </aside>
      <Suspense fallback={null}>
        {dialog === 'code' && (
          <CodeDialog
            body={{ ...body, instruction: instruction || 'What is 17 * 23?' }}
            onClose={() => setDialog(undefined)}
          />
        )}
        {dialog === 'exchange' && interaction.data && (
          <ExchangeDialog
            interaction={interaction.data}
            sent={sent?.id === runId ? sent?.body : undefined}
            onClose={() => setDialog(undefined)}
          />
        )}
        {dialog === 'settings' && (
          <Sheet open side="right" onClose={() => setDialog(undefined)} title="What it runs with">
            {panel}
          </Sheet>
        )}
      </Suspense>
    </div>
  )
}

/** A run made again counts as its agent's, with what it ran with then. */
function OfAgent({ origin, onDetach }: { readonly origin: Origin; readonly onDetach: () => void }) {
  return (
    <p className="flex items-center gap-2 rounded-lg bg-hover py-1 pr-1 pl-3 text-small text-soft">
      <span className="min-w-0 flex-1 truncate">
        As {origin.agentId} v{origin.agentVersion}, with what is set below
      </span>
      <IconButton icon="close" size="small" label="As no agent’s" onClick={onDetach} />
    </p>
  )
}

function AgentFacts({ settings, id }: { readonly settings: Settings; readonly id: string }) {
  const rows = [
    ['Model', settings.model],
    ['Tools', settings.tools.join(', ') || 'none'],
    ['Skills', settings.skills.join(', ') || 'none'],
    ['Network', typeof settings.network === 'string' ? settings.network : settings.network.allow.join(', ')],
  ]
  return (
    <div className="grid gap-4">
      {settings.systemInstruction && (
        <p className="line-clamp-6 whitespace-pre-wrap text-soft">{settings.systemInstruction}</p>
      )}
      <dl className="grid gap-2">
        {rows.map(([name, value]) => (
          <div key={name} className="grid grid-cols-[5rem_1fr] gap-2">
            <dt className="text-soft">{name}</dt>
            <dd className="break-words">{value}</dd>
          </div>
        ))}
      </dl>
      <Link to="/agents/$id" params={{ id }} className="text-small font-medium text-accent hover:underline">
        Edit this agent
      </Link>
    </div>
  )
}

const SUGGESTIONS = [
  ['Do the sums', 'What is (17 * 23 + 4) / 5? Show the code.'],
  ['Make a file', 'Write the first 40 Fibonacci numbers into outputs/fibonacci.csv, with their index.'],
  ['Look around', 'Which Python modules can you import here? Try numpy, pandas and matplotlib.'],
] as const

interface ConversationProps {
  readonly run: LiveRun
  readonly interaction: Interaction | undefined
  /** What was sent from here, until the server tells it. */
  readonly sent: NewInteraction | undefined
  readonly onSuggest: (instruction: string) => void
}

function Conversation({ run, interaction, sent, onSuggest }: ConversationProps) {
  const { trace, id, problem, starting } = run
  const decide = useDecide(id)
  const asking = interaction && interaction.id === id ? interaction : sent
  const scroller = useFollowing(trace.blocks, interaction?.files)
  if (!id && !starting && problem === undefined) return <Welcome onSuggest={onSuggest} />
  return (
    <Scroller ref={scroller} label="Run" className="min-h-0 flex-1 overflow-y-auto focus-visible:-outline-offset-2">
      <div className="mx-auto grid max-w-3xl gap-4 px-4 py-5">
        {asking?.previousInteractionId && <EarlierTurns id={asking.previousInteractionId} />}
        {asking && <Asked text={asking.instruction} />}
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
        Open the interaction
      </Link>
    </footer>
  )
}

function Welcome({ onSuggest }: { readonly onSuggest: (instruction: string) => void }) {
  return (
    <div className="grid min-h-0 flex-1 place-items-center overflow-y-auto px-4 py-8">
      <div className="w-full max-w-xl">
        <h2 className="text-title font-semibold tracking-tight">What should it do?</h2>
        <p className="mt-1 text-soft text-pretty">
          It gets a fresh sandbox, the tools at the side, and the files you drop here. You see every step as it happens.
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
          Without a network, unless you give it one.
        </p>
      </div>
    </div>
  )
}

function StopButton({ id }: { readonly id: string }) {
  const cancel = useMutation({
    mutationFn: () => cancelInteraction({ path: { id } }),
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return (
    <Button icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate()}>
      Cancel
    </Button>
  )
}

const NEAR_PX = 80

/** Keeps the newest in sight, for as long as the reader is at the foot. */
function useFollowing(blocks: unknown, files: unknown) {
  const scroller = useRef<HTMLElement>(null)
  const atFoot = useRef(true)
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const onScroll = () => {
      atFoot.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX
    }
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => element.removeEventListener('scroll', onScroll)
  })
  // Whenever something was added.
  useEffect(() => {
    if (atFoot.current) scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  }, [blocks, files])
  return scroller
}
