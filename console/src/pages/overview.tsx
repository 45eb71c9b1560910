/** The first page: what is going on, and the shortest way to a first run. */
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
      about="What your agents did last, and what this server gives them."
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
        {/* Whether there is a remark above it is known first, so that what is read does not move. */}
        {server.isPending ? (
          <Loading rows={RECENT} />
        ) : (
          <Card
            flush
            title="Latest runs"
            actions={
              <Link to="/interactions" className="text-small text-soft hover:text-text">
                All interactions
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
        <Notice title="The built-in demo model answers">
          It has no intelligence, but runs real code in the real sandbox. For a real model, give the server a provider’s
          key or a local model server; what it has found stands under{' '}
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
              ? `${sandbox.attacks.refused} of ${sandbox.attacks.tried} attacks on itself refused`
              : 'no attacks tried'
          }
        />
        <Fact
          icon="agent"
          name="Default model"
          value={server.defaultModel}
          about={callable.length > 0 ? `${callable.length} models ready` : 'built-in demo'}
        />
        <Fact
          icon="code"
          name="Tools"
          value={`${tools.available.length} ready`}
          about={
            tools.missing.length > 0 ? `not here: ${tools.missing.map(({ name }) => name).join(', ')}` : 'all of them'
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
        title="Nothing has run yet"
        action={
          mayRun && (
            <>
              <ButtonLink to="/playground" look="primary" icon="play">
                Run the first one
              </ButtonLink>
              <ButtonLink to="/agents/new" icon="plus">
                Create an agent
              </ButtonLink>
            </>
          )
        }
      >
        Give an agent an instruction and some files; every step it takes shows up here.
      </Empty>
      <div className="px-4 pb-4">
        <CodeBlock title="From a terminal" text={command} language="plain" />
      </div>
    </>
  )
}
