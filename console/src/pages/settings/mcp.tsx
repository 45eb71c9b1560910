/** The MCP servers of this project's agents and of the operator: who uses each, whether it answers now, its tools. */
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
      about="What the project’s agents use and what the operator registered, asked now as a run would ask: through the egress guard."
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
            An agent gets one in its form; the operator can register some in errand.yaml, under{' '}
            <code className="text-small">mcp</code>.
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
  const mayAsk = useMayChange()
  const check = useQuery({
    queryKey: ['mcp-servers', path, 'check', name, url, credentialId],
    queryFn: () =>
      ask<McpCheck>('POST', `${path}/mcp-servers/check`, {
        name,
        ...(url && { url }),
        ...(credentialId && { credentialId }),
      }),
    enabled: mayAsk,
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  })
  return (
    <li className="border-t px-4 py-3 first:border-t-0">
      <div className="flex items-start gap-4">
        <div className="min-w-0 flex-1">
          <p className="flex flex-wrap items-center gap-2">
            <span className="font-medium">{name}</span>
            {registered && <Badge>{kind === 'program' ? 'the operator’s program' : 'the operator’s'}</Badge>}
            {credentialId && <Badge>signs in with {credentialId}</Badge>}
          </p>
          {url && <p className="truncate text-small text-faint">{url}</p>}
          <p className="text-small text-soft">
            {agents.length === 0 ? 'No agent uses it.' : 'Used by '}
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
        <State check={check.data} asking={check.isFetching} kind={kind} mayAsk={mayAsk} />
        {mayAsk && (
          <IconButton
            icon="retry"
            label={`Ask ${name} again`}
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
  asking,
  kind,
  mayAsk,
}: {
  readonly check: McpCheck | undefined
  readonly asking: boolean
  readonly kind: McpServerUse['kind']
  readonly mayAsk: boolean
}) {
  if (asking && !check) {
    return (
      <span role="status" aria-label="Asking" className="flex h-8 items-center">
        <Spinner className="text-accent" />
      </span>
    )
  }
  if (!check) return mayAsk ? null : <span className="text-small text-faint">An owner or a developer can ask it.</span>
  if (kind === 'program') return <Badge>starts with each run</Badge>
  return check.answers ? (
    <Badge tone="green">answers, {duration(check.durationMs)}</Badge>
  ) : (
    <Badge tone="red">does not answer</Badge>
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
          {all ? 'Fewer' : `All ${tools.length} tools`}
        </button>
      )}
    </>
  )
}
