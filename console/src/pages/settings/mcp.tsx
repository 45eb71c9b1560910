/** The MCP servers of the project's agents and of the operator: status, tools, and the agents that use each. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { ask, type McpCheck, type McpServerUse, project as projectPath } from '../../server/console-api.ts'
import { Problem } from '../../server/problem.ts'
import { useMayChange, useSession } from '../../session/session.ts'
import { Page } from '../../shell/page.tsx'
import { Badge } from '../../ui/badge.tsx'
import { IconButton } from '../../ui/button.tsx'
import { duration } from '../../ui/format.ts'
import { Spinner } from '../../ui/icon.tsx'
import { Empty, Failure, Loading } from '../../ui/states.tsx'

export default function McpServers() {
  const path = projectPath(useSession()?.project?.id ?? '')
  const servers = useQuery({
    queryKey: ['mcp-servers', path],
    queryFn: () => ask<{ servers: McpServerUse[] }>('GET', `${path}/mcp-servers`),
  })
  return (
    <Page
      narrow
      title="MCP servers"
      about="Servers that agents use or the operator registered. They are checked now, through the egress guard, like in a run."
    >
      <div className="overflow-hidden rounded-xl border bg-card">
        {servers.error ? (
          <Failure error={servers.error} retry={() => servers.refetch()} />
        ) : !servers.data ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : servers.data.servers.length === 0 ? (
          <Empty icon="plug" title="No MCP servers yet">
            Add servers to an agent, or register them in errand.yaml under <code className="text-small">mcp</code>.
          </Empty>
        ) : (
          <ul aria-label="MCP servers">
            {servers.data.servers.map((server) => (
              <Row key={`${server.name} ${server.url} ${server.credentialId}`} server={server} path={path} />
            ))}
          </ul>
        )}
      </div>
    </Page>
  )
}

function Row({ server, path }: { readonly server: McpServerUse; readonly path: string }) {
  const { name, url, kind, registered, credentialId, agents } = server
  const mayCheck = useMayChange()
  const check = useQuery({
    queryKey: ['mcp-servers', path, 'check', name, url, credentialId],
    queryFn: () =>
      ask<McpCheck>('POST', `${path}/mcp-servers/check`, {
        name,
        ...(url && { url }),
        ...(credentialId && { credentialId }),
      }),
    enabled: mayCheck,
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  })
  return (
    <li className="border-t px-4 py-3 first:border-t-0">
      <div className="flex items-start gap-4">
        <div className="min-w-0 flex-1">
          <p className="flex flex-wrap items-center gap-2">
            <span className="font-medium">{name}</span>
            {registered && <Badge>{kind === 'program' ? 'registered program' : 'registered'}</Badge>}
            {credentialId && <Badge>credential: {credentialId}</Badge>}
          </p>
          {url && <p className="truncate text-small text-faint">{url}</p>}
          <p className="text-small text-soft">
            {agents.length === 0 ? 'Not used by any agent.' : 'Used by '}
            {agents.map(({ id, displayName }, i) => (
              <span key={id}>
                {i > 0 && ', '}
                <Link to="/agents/$id" params={{ id }} className="font-medium text-text hover:underline">
                  {displayName ?? id}
                </Link>
              </span>
            ))}
          </p>
        </div>
        <State check={check.data} checking={check.isFetching} kind={kind} mayCheck={mayCheck} />
        {mayCheck && (
          <IconButton
            icon="retry"
            label={`Check ${name} again`}
            disabled={check.isFetching}
            onClick={() => check.refetch()}
          />
        )}
      </div>
      {check.error && <p className="mt-2 text-small text-red">{Problem.from(check.error).message}</p>}
      {check.data?.problems.map((problem) => (
        <p key={problem} className="mt-2 text-small text-soft [overflow-wrap:anywhere]">
          {problem}
        </p>
      ))}
      {check.data && check.data.tools.length > 0 && <Tools tools={check.data.tools} />}
    </li>
  )
}

function State({
  check,
  checking,
  kind,
  mayCheck,
}: {
  readonly check: McpCheck | undefined
  readonly checking: boolean
  readonly kind: McpServerUse['kind']
  readonly mayCheck: boolean
}) {
  if (checking && !check) {
    return (
      <span role="status" aria-label="Checking" className="flex h-8 items-center">
        <Spinner className="text-accent" />
      </span>
    )
  }
  if (!check)
    return mayCheck ? null : <span className="text-small text-faint">Only owners and developers can check it.</span>
  if (kind === 'program') return <Badge>started with each run</Badge>
  return check.answers ? (
    <Badge tone="green">connected, {duration(check.durationMs)}</Badge>
  ) : (
    <Badge tone="red">not reachable</Badge>
  )
}

const SHOWN = 6

function Tools({ tools }: { readonly tools: McpCheck['tools'] }) {
  const [all, setAll] = useState(false)
  return (
    <>
      <ul aria-label="Tools" className="mt-2.5 grid gap-1.5 rounded-lg bg-code p-3">
        {(all ? tools : tools.slice(0, SHOWN)).map(({ name, description }) => (
          <li key={name} className="grid gap-x-4 text-small sm:grid-cols-[14rem_minmax(0,1fr)]">
            <code className="truncate">{name}</code>
            <span className="line-clamp-2 text-soft">{description}</span>
          </li>
        ))}
      </ul>
      {tools.length > SHOWN && (
        <button
          type="button"
          aria-expanded={all}
          onClick={() => setAll(!all)}
          className="mt-1.5 text-small font-medium underline underline-offset-2"
        >
          {all ? 'Show fewer' : `Show all ${tools.length} tools`}
        </button>
      )}
    </>
  )
}
