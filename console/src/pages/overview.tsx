/** The overview page: server facts, the latest runs, and how to start the first. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Server } from '../api/types.gen.js'
import { runsQuery, serverQuery } from '../server/queries.ts'
import { useMayChange } from '../session/session.ts'
import { Card, Page } from '../shell/page.tsx'
import { ButtonLink } from '../ui/button.tsx'
import { CodeBlock } from '../ui/code.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Empty, Failure, Loading, Notice } from '../ui/states.tsx'
import { RunRowHead, RunRows } from './run-rows.tsx'

const RECENT = 8

export default function Overview() {
  const mayChange = useMayChange()
  const server = useQuery(serverQuery)
  const runs = useInfiniteQuery(runsQuery({}))
  const recent = runs.data?.pages[0]?.interactions.slice(0, RECENT)
  return (
    <Page
      title="Overview"
      about="Recent runs and the state of this server."
      actions={
        mayChange && (
          <ButtonLink to="/playground" look="primary" icon="play">
            New run
          </ButtonLink>
        )
      }
    >
      <div className="grid gap-5">
        {server.data && <Facts server={server.data} />}
        {/* Waits for the server facts above, so that the list does not move. */}
        {server.isPending ? (
          <Loading rows={RECENT} />
        ) : (
          <Card
            flush
            title="Latest runs"
            actions={
              <Link to="/interactions" className="text-small text-soft hover:text-text">
                View all runs
              </Link>
            }
          >
            {runs.error ? (
              <Failure error={runs.error} retry={() => runs.refetch()} />
            ) : recent === undefined ? (
              <div className="px-4 pb-4">
                <Loading rows={RECENT} />
              </div>
            ) : recent.length === 0 ? (
              <FirstRun mayRun={mayChange} />
            ) : (
              <>
                <RunRowHead />
                <RunRows runs={recent} />
              </>
            )}
          </Card>
        )}
      </div>
    </Page>
  )
}

function Facts({ server }: { readonly server: Server }) {
  const { sandbox, models, tools } = server
  const callable = models.filter(({ unavailable, demo }) => unavailable === undefined && !demo)
  return (
    <>
      {callable.length === 0 && (
        <Notice title="No model is configured: the demo model answers">
          The demo model is scripted, but runs real code in the sandbox. To use a real model, configure a provider’s API
          key or a local model server. See{' '}
          <Link to="/settings/models" className="font-medium underline">
            Models
          </Link>
          .
        </Notice>
      )}
      <ul className="grid gap-3 sm:grid-cols-3">
        <Fact
          icon="shield"
          name="Sandbox"
          value={sandbox.driver}
          about={
            sandbox.attacks.tried > 0
              ? `${sandbox.attacks.refused} of ${sandbox.attacks.tried} isolation tests passed`
              : 'isolation not tested'
          }
        />
        <Fact
          icon="agent"
          name="Default model"
          value={server.defaultModel}
          about={callable.length > 0 ? `${callable.length} models available` : 'built-in demo'}
        />
        <Fact
          icon="code"
          name="Tools"
          value={`${tools.available.length} available`}
          about={
            tools.missing.length > 0
              ? `not available: ${tools.missing.map(({ name }) => name).join(', ')}`
              : 'all tools'
          }
        />
      </ul>
    </>
  )
}

function Fact({
  icon,
  name,
  value,
  about,
}: {
  readonly icon: IconName
  readonly name: string
  readonly value: string
  readonly about: string
}) {
  return (
    <li className="flex items-start gap-3 rounded-xl border bg-card px-4 py-3">
      <Icon name={icon} className="mt-0.5 text-accent" />
      <div className="min-w-0">
        <p className="text-small text-soft">{name}</p>
        <p className="truncate text-lead font-semibold">{value}</p>
        <p className="truncate text-small text-faint">{about}</p>
      </div>
    </li>
  )
}

function FirstRun({ mayRun }: { readonly mayRun: boolean }) {
  const command = `curl -s ${location.origin}/v1beta/interactions -H "x-svc-api-key: $ERRAND_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"instruction": "What is 17 * 23?", "tools": ["code_execution"]}'`
  return (
    <>
      <Empty
        icon="play"
        title="No runs yet"
        action={
          mayRun && (
            <>
              <ButtonLink to="/playground" look="primary" icon="play">
                Start a run
              </ButtonLink>
              <ButtonLink to="/agents/new" icon="plus">
                Create agent
              </ButtonLink>
            </>
          )
        }
      >
        Start a run in the playground or through the API.
      </Empty>
      <div className="px-4 pb-4">
        <CodeBlock title="From a terminal" text={command} language="plain" />
      </div>
    </>
  )
}
