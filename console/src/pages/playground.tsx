/** The playground: the conversation at the left, the next instruction below it, the settings at the right. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { toRequest } from '../agent-form/settings.ts'
import type { Interaction, NewInteraction } from '../api/types.gen.js'
import { runQuery } from '../server/queries.ts'
import { useMayChange } from '../session/session.ts'
import { useTitle } from '../shell/page.tsx'
import { type LiveRun, useRun } from '../trace/use-run.ts'
import { Status } from '../ui/badge.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { cx } from '../ui/cx.ts'
import { Composer } from './composer.tsx'
import { Conversation } from './conversation.tsx'
import { rerunRequest } from './rerun.ts'
import { RunSettingsPanel } from './run-settings-panel.tsx'
import { StopButton } from './stop-button.tsx'
import { useRunForm } from './use-run-form.ts'

const CodeDialog = lazy(() => import('../agent-form/code-dialog.tsx'))
const RequestDialog = lazy(() => import('./request-dialog.tsx'))
const Sheet = lazy(() => import('../ui/overlay.tsx').then(({ Sheet }) => ({ default: Sheet })))

const route = getRouteApi('/playground')

type DialogName = 'code' | 'request' | 'settings'

export default function Playground() {
  useTitle('Playground')
  const navigate = useNavigate()
  const { run: runId, agent: agentId, again } = route.useSearch()
  /** The last request that was sent from this page, and the id of its run. */
  const [sent, setSent] = useState<{ readonly body: NewInteraction; readonly id?: string }>()
  const [dialog, setDialog] = useState<DialogName>()
  const run = useRun(runId, (id) => {
    setSent((before) => before && { ...before, id })
    navigate({ to: '/playground', search: (before) => ({ ...before, run: id, again: undefined }) })
  })
  const interaction = useQuery({ ...runQuery(runId ?? ''), enabled: runId !== undefined })
  const opened = interaction.data?.id === runId ? interaction.data : undefined
  const form = useRunForm(again, opened, agentId !== undefined || sent?.id === opened?.id)
  const { settings, instruction, origin, files } = form
  const ended = run.trace.status !== 'running'
  const continues = runId !== undefined && ended
  const body: NewInteraction = {
    instruction,
    ...(agentId ? { agentId } : origin ? rerunRequest(origin, settings) : toRequest(settings)),
    ...(continues && { previousInteractionId: runId }),
    ...(files.length > 0 && {
      files: files.map(({ name, content }) => ({ name, content, encoding: 'base64' as const })),
    }),
  }
  const submit = () => {
    setSent({ body })
    run.start(body)
    form.setInstruction('')
    form.setFiles([])
  }
  const startNew = () => {
    setSent(undefined)
    form.setOrigin(undefined)
    navigate({ to: '/playground', search: agentId ? { agent: agentId } : {} })
  }
  const mayRun = useMayChange()
  const busy = run.starting || (runId !== undefined && !ended && run.problem === undefined)
  const panel = (
    <RunSettingsPanel
      agentId={agentId}
      onAgent={(id) => navigate({ to: '/playground', search: (before) => ({ ...before, agent: id }) })}
      origin={origin}
      onOrigin={form.setOrigin}
      settings={settings}
      onSettings={form.setSettings}
    />
  )
  return (
    <div className="grid h-[calc(100dvh-3rem)] grid-rows-1 lg:h-dvh lg:grid-cols-[minmax(0,1fr)_21rem]">
      <div className="flex min-h-0 min-w-0 flex-col">
        <Header run={run} runId={runId} onNew={startNew} onDialog={setDialog} />
        <Conversation
          key={run.trace.events.length === 0 ? 'none' : runId}
          run={run}
          interaction={interaction.data}
          sent={sent?.body}
          onSuggest={form.setInstruction}
        />
        <Composer
          instruction={instruction}
          onInstruction={form.setInstruction}
          files={files}
          onFiles={form.setFiles}
          busy={busy}
          mayRun={mayRun}
          continues={continues}
          onRun={submit}
          stop={runId && busy && mayRun ? <StopButton id={runId} /> : undefined}
        />
      </div>
      <aside aria-label="Configuration" className="hidden min-h-0 overflow-y-auto border-l bg-panel lg:block">
        {panel}
      </aside>
      <Dialogs
        open={dialog}
        onClose={() => setDialog(undefined)}
        body={{ ...body, instruction: instruction || 'What is 17 * 23?' }}
        interaction={interaction.data}
        sent={sent?.id === runId ? sent?.body : undefined}
        panel={panel}
      />
    </div>
  )
}

interface DialogsProps {
  readonly open: DialogName | undefined
  readonly onClose: () => void
  readonly body: NewInteraction
  readonly interaction: Interaction | undefined
  readonly sent: NewInteraction | undefined
  readonly panel: ReactNode
}

function Dialogs({ open, onClose, body, interaction, sent, panel }: DialogsProps) {
  return (
    <Suspense fallback={null}>
      {open === 'code' && <CodeDialog body={body} onClose={onClose} />}
      {open === 'request' && interaction && <RequestDialog interaction={interaction} sent={sent} onClose={onClose} />}
      {open === 'settings' && (
        <Sheet open side="right" onClose={onClose} title="Configuration">
          {panel}
        </Sheet>
      )}
    </Suspense>
  )
}

interface HeaderProps {
  readonly run: LiveRun
  readonly runId: string | undefined
  readonly onNew: () => void
  readonly onDialog: (name: DialogName) => void
}

function Header({ run, runId, onNew, onDialog }: HeaderProps) {
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-b px-4">
      <h1 className={cx('text-lead font-semibold', runId && 'max-sm:sr-only')}>Playground</h1>
      {runId && <Status status={run.trace.status} stage={run.trace.stage} />}
      <span className="flex-1" />
      {runId && (
        <Button size="small" look="ghost" icon="plus" onClick={onNew}>
          New
        </Button>
      )}
      <Button size="small" look="ghost" icon="code" onClick={() => onDialog('code')} className="max-sm:hidden">
        Get code
      </Button>
      {runId && <IconButton icon="terminal" label="Request and response" onClick={() => onDialog('request')} />}
      <IconButton icon="settings" label="Configuration" onClick={() => onDialog('settings')} className="lg:hidden" />
    </header>
  )
}
