/** The list of the project's agents. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import type { Agent } from '../api/types.gen.js'
import { agentsQuery } from '../server/queries.ts'
import { useMayChange } from '../session/session.ts'
import { Page } from '../shell/page.tsx'
import { Badge } from '../ui/badge.tsx'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Input } from '../ui/field.tsx'
import { ago } from '../ui/format.ts'
import { Empty, Failure, Loading } from '../ui/states.tsx'

const route = getRouteApi('/agents')

export default function Agents() {
  const navigate = useNavigate()
  const { q = '' } = route.useSearch()
  const mayChange = useMayChange()
  const agents = useInfiniteQuery(agentsQuery)
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = agents
  // Loads all pages during a search, because a match may be on any of them.
  useEffect(() => {
    if (q !== '' && hasNextPage && !isFetchingNextPage) fetchNextPage()
  }, [q, hasNextPage, isFetchingNextPage, fetchNextPage])
  const all = agents.data?.pages.flatMap((page) => page.agents) ?? []
  const found = all.filter(({ id, displayName, description }) =>
    `${id} ${displayName} ${description}`.toLowerCase().includes(q.toLowerCase()),
  )
  return (
    <Page
      title="Agents"
      about="Reusable, versioned configurations of instructions, tools and limits."
      actions={
        mayChange && (
          <ButtonLink to="/agents/new" look="primary" icon="plus">
            Create agent
          </ButtonLink>
        )
      }
    >
      {agents.error ? (
        <Failure error={agents.error} retry={() => agents.refetch()} />
      ) : agents.isPending ? (
        <Loading rows={10} />
      ) : all.length === 0 ? (
        <div className="rounded-xl border bg-card">
          <Empty
            icon="agent"
            title="No agents yet"
            action={
              mayChange && (
                <ButtonLink to="/agents/new" look="primary" icon="plus">
                  Create agent
                </ButtonLink>
              )
            }
          >
            Save a configuration once, then run it with an agent ID and an instruction.
          </Empty>
        </div>
      ) : (
        <>
          <Input
            type="search"
            aria-label="Search agents"
            placeholder="Search by name or description"
            value={q}
            className="!w-72"
            onChange={(event) =>
              navigate({ to: '/agents', search: event.target.value ? { q: event.target.value } : {}, replace: true })
            }
          />
          <ul aria-label="Agents" className="mt-3 overflow-hidden rounded-xl border bg-card">
            {found.map((agent) => (
              <AgentRow key={agent.id} agent={agent} />
            ))}
            {found.length === 0 && (
              <li>
                <Empty icon="search" title="No agents match" />
              </li>
            )}
          </ul>
          {agents.hasNextPage && (
            <Button
              look="ghost"
              busy={agents.isFetchingNextPage}
              onClick={() => agents.fetchNextPage()}
              className="mt-3"
            >
              Load more
            </Button>
          )}
        </>
      )}
    </Page>
  )
}

function AgentRow({ agent }: { readonly agent: Agent }) {
  const { id, displayName, description, model, tools, version, updateTime } = agent
  return (
    <li className="border-t first:border-t-0">
      <Link
        to="/agents/$id"
        params={{ id }}
        className="flex items-center gap-4 px-4 py-3 hover:bg-hover focus-visible:-outline-offset-2"
      >
        <div className="min-w-0 flex-1">
          <p className="truncate font-medium">
            {displayName ?? id} {displayName && <code className="ml-1 text-small font-normal text-faint">{id}</code>}
          </p>
          <p className="truncate text-soft">{description ?? agent.systemInstruction ?? 'No description'}</p>
        </div>
        <div className="hidden shrink-0 gap-1 lg:flex">
          {tools.slice(0, 3).map((tool) => (
            <Badge key={tool}>{tool}</Badge>
          ))}
          {tools.length > 3 && <Badge>+{tools.length - 3}</Badge>}
        </div>
        <span className="hidden w-28 shrink-0 truncate text-right text-soft md:block">{model}</span>
        <span className="w-8 shrink-0 text-right text-soft tabular-nums">v{version}</span>
        <span className="hidden w-28 shrink-0 text-right text-small text-faint sm:block">{ago(updateTime)}</span>
      </Link>
    </li>
  )
}
