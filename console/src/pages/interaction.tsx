/** The page of a run: instruction, trace, usage, network activity. Its URL can be shared. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Tabs } from 'radix-ui'
import type { Interaction } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { runQuery } from '../server/queries.ts'
import { Card, Page } from '../shell/page.tsx'
import { Files, GivenFiles } from '../trace/files.tsx'
import { TimeBar, Timeline } from '../trace/timeline.tsx'
import { TraceView } from '../trace/trace-view.tsx'
import { useApproval } from '../trace/use-approval.ts'
import { type LiveRun, useRun } from '../trace/use-run.ts'
import { Badge, Status } from '../ui/badge.tsx'
import { CodeBlock } from '../ui/code.tsx'
import { ago, cost, count, counted, duration, moment } from '../ui/format.ts'
import { Failure, Loading, Notice } from '../ui/states.tsx'
import { TAB_CLASS } from '../ui/tab-class.ts'
import { InteractionActions } from './interaction-actions.tsx'
import { AuditView, DeliveriesView } from './network-and-webhooks.tsx'
import { requestOf } from './rerun.ts'
import { RunConfiguration } from './run-configuration.tsx'

const route = getRouteApi('/interactions/$id')

export default function InteractionPage() {
  const { id } = route.useParams()
  const interaction = useQuery(runQuery(id))
  const run = useRun(id)
  if (interaction.error) {
    return (
      <Page title="Run" above={<Back />}>
        <Failure error={interaction.error} retry={() => interaction.refetch()} />
      </Page>
    )
  }
  if (!interaction.data) {
    return (
      <Page title="Run" above={<Back />}>
        <Loading rows={12} />
      </Page>
    )
  }
  return <InteractionDetails interaction={interaction.data} run={run} />
}

function Back() {
  return (
    <Link to="/interactions" className="hover:text-text">
      Runs
    </Link>
  )
}

const TABS = ['trace', 'timeline', 'settings', 'events', 'outside', 'json'] as const
const TAB_NAMES = {
  trace: 'Trace',
  timeline: 'Timeline',
  settings: 'Configuration',
  events: 'Events',
  outside: 'Network & webhooks',
  json: 'Request and response',
}

function InteractionDetails({ interaction, run }: { readonly interaction: Interaction; readonly run: LiveRun }) {
  const navigate = useNavigate()
  const { tab = 'trace' } = route.useSearch()
  const decide = useApproval(interaction.id)
  const { trace } = run
  const status = trace.events.length > 0 ? trace.status : interaction.status
  return (
    <Page
      title={title(interaction.instruction)}
      above={<Back />}
      about={<Line interaction={interaction} status={status} stage={trace.stage} />}
      actions={<InteractionActions interaction={interaction} status={status} />}
    >
      <Figures interaction={interaction} run={run} />
      <TimeBar interaction={interaction} />
      {run.problem !== undefined && (
        <Notice tone="red" title="The events can’t be loaded">
          {Problem.from(run.problem).message}
        </Notice>
      )}
      <Tabs.Root
        value={tab}
        onValueChange={(next) =>
          navigate({
            to: '/interactions/$id',
            params: { id: interaction.id },
            search: next === 'trace' ? {} : { tab: next },
            replace: true,
          })
        }
      >
        <Tabs.List aria-label="Sections" className="mt-5 mb-4 flex gap-4 overflow-x-auto sm:gap-5 border-b">
          {TABS.map((name) => (
            <Tabs.Trigger key={name} value={name} className={TAB_CLASS}>
              <span className="whitespace-nowrap">{TAB_NAMES[name]}</span>
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        <Tabs.Content value="trace" className="grid gap-4" tabIndex={-1}>
          {interaction.instruction.length > TITLE_CHARS && <Asked text={interaction.instruction} />}
          <GivenFiles files={interaction.resolved.files} />
          <TraceView trace={trace} files={interaction.files} onDecide={decide} />
          {interaction.files.length > 0 && <Files files={interaction.files} />}
        </Tabs.Content>
        <Tabs.Content value="timeline">
          <Timeline interaction={interaction} />
        </Tabs.Content>
        <Tabs.Content value="settings">
          <RunConfiguration interaction={interaction} />
        </Tabs.Content>
        <Tabs.Content value="events">
          <CodeBlock
            title={`${trace.events.length} events`}
            language="json"
            text={trace.events
              .map(({ seq, type, data }) => `${String(seq).padStart(4)}  ${type}  ${JSON.stringify(data)}`)
              .join('\n')}
          />
        </Tabs.Content>
        <Tabs.Content value="outside" className="grid gap-4">
          <AuditView id={interaction.id} />
          <DeliveriesView id={interaction.id} />
        </Tabs.Content>
        <Tabs.Content value="json" className="grid gap-4">
          <CodeBlock title="Resolved request" language="json" text={JSON.stringify(requestOf(interaction), null, 2)} />
          <CodeBlock title="Response" language="json" text={JSON.stringify(interaction, null, 2)} />
        </Tabs.Content>
      </Tabs.Root>
    </Page>
  )
}

const TITLE_CHARS = 110

function title(instruction: string): string {
  const line = instruction.trim().split('\n', 1)[0]!
  return line.length > TITLE_CHARS ? `${line.slice(0, TITLE_CHARS)}…` : line
}

function Asked({ text }: { readonly text: string }) {
  return (
    <Card title="Instruction">
      <p className="max-h-60 overflow-y-auto whitespace-pre-wrap break-words">{text}</p>
    </Card>
  )
}

function Line({
  interaction,
  status,
  stage,
}: {
  readonly interaction: Interaction
  readonly status: string
  readonly stage?: string
}) {
  const { agentId, agentVersion, model, createTime, labels } = interaction
  return (
    <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
      <Status status={status} stage={stage} />
      {agentId && (
        <Link to="/agents/$id" params={{ id: agentId }} className="hover:text-text">
          {agentId} v{agentVersion}
        </Link>
      )}
      <span>{model}</span>
      <time dateTime={createTime} title={moment(createTime)}>
        {ago(createTime)}
      </time>
      <code className="text-small text-faint">{interaction.id}</code>
      {Object.entries(labels).map(([key, value]) => (
        <Badge key={key}>
          {key}={value}
        </Badge>
      ))}
    </div>
  )
}

function Figures({ interaction, run }: { readonly interaction: Interaction; readonly run: LiveRun }) {
  const usage = run.trace.usage ?? interaction.usage
  const figures = [
    [
      'Duration',
      duration(usage.duration_ms),
      usage.sandbox_ms === undefined ? '' : `${duration(usage.sandbox_ms)} in the sandbox`,
    ],
    ['Model calls', count(usage.model_calls ?? 0), counted(usage.tool_calls ?? 0, 'tool call')],
    [
      'Tokens',
      count(usage.input_tokens + usage.output_tokens),
      `${count(usage.input_tokens)} in · ${count(usage.output_tokens)} out`,
    ],
    ['Cost', cost(usage.cost?.amount, usage.cost?.currency), usage.cost ? '' : 'no price for this model'],
  ]
  return (
    <dl className="grid grid-cols-2 overflow-hidden rounded-xl border bg-card md:grid-cols-4 [&>div]:shadow-[0_0_0_.5px_var(--line)]">
      {figures.map(([name, value, about]) => (
        <div key={name} className="min-w-0 px-4 py-3">
          <dt className="text-small text-soft">{name}</dt>
          <dd className="truncate text-lead font-semibold tabular-nums">{value}</dd>
          <dd className="h-[1.125rem] truncate text-small text-faint">{about}</dd>
        </div>
      ))}
    </dl>
  )
}
